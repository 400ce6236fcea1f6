"""The pairs of two runs over the first samples of their order, up to the first without an outcome in both."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from proctor.values.comparison import Decision, DecisionVerdict
from proctor.values.metrics.catalogue import METRICS
from services.results.runs.run_plan import RunPlan
from services.results.scoring.compiled_scoring import ScoredMetric
from services.results.scoring.score import ScoreValue, sample_score
from services.results.statistics.sequential.betting import SequentialVerdict, sequence_with_failures

# Graded scores differ in the last digits of sums; more digits would only make more kinds.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class AnsweredSample:
    """Outcomes of a sample in a run; `scores` are those of its answers, by rollout."""

    task_index: int
    outcomes: int
    scores: tuple[ScoreValue, ...] = ()


@dataclass(slots=True)
class AnsweredPairs:
    """`position`: how many samples of the order both runs have all outcomes of, without a gap.

    What comes behind a gap waits: answers that come early are short ones, and not a random part.
    `differences` of shares of the range of the metric go by their value.
    """

    position: int = 0
    failed: int = 0
    differences: Counter[float] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.differences.total()

    def add(
        self,
        metric: ScoredMetric,
        first: Sequence[ScoreValue],
        second: Sequence[ScoreValue],
        rollouts: int,
    ) -> None:
        """The next sample. It is no pair where an answer of its `rollouts` has no score in one of the runs.

        The others do not stand for it: what fails are often the long answers.
        """
        self.position += 1
        if min(len(first), len(second)) < rollouts:
            self.failed += 1
            return
        vote = metric.pipeline.vote
        difference = sample_score(first, vote) - sample_score(second, vote)
        self.differences[round(difference / range_of(metric), _DIGITS)] += 1

    def decided(self, alpha: float, margin_points: float | None) -> Decision | None:
        """None where nothing is shown yet."""
        kinds = np.array([*self.differences], dtype=np.float64)
        counts = np.array([*self.differences.values()], dtype=np.int64)
        found = sequence_with_failures(kinds, counts, self.failed, alpha)
        verdict = found.verdict(None if margin_points is None else margin_points / 100)
        if verdict is SequentialVerdict.UNDECIDED:
            return None
        return Decision(
            DecisionVerdict(verdict.value),
            float(kinds @ counts) / self.count if self.count else None,
            found.low,
            found.high,
            self.count,
            self.failed,
            alpha,
            margin_points,
        )


def range_of(metric: ScoredMetric) -> float:
    """In which the scores of all answers lie; 0 where that is not known."""
    entry = metric.metric.entry
    # What Python code of a task scores, or a log has, may be any number.
    if METRICS.get(metric.metric.name) is not entry or entry.unit.low is None or entry.unit.high is None:
        return 0.0
    return entry.unit.high - entry.unit.low


def paired_metrics(first: RunPlan, second: RunPlan) -> Sequence[ScoredMetric]:
    """The main metric of each task; none where the runs cannot be decided between sample by sample."""
    if _samples(first) != _samples(second) or first.rollouts != second.rollouts:
        return ()
    mains = [
        [next(iter(scoring.scored_metrics), None) for scoring in plan.scorings] for plan in (first, second)
    ]
    found = [one for one, other in zip(*mains, strict=True) if one and other and one.key == other.key]
    return found if len(found) == len(first.tasks) and all(map(_has_range, found)) else ()


def _samples(plan: RunPlan) -> Mapping[str, tuple[str, int, int]]:
    return {task.task: (task.sample_set_id, task.first_sample, task.sample_count) for task in plan.tasks}


def _has_range(metric: ScoredMetric) -> bool:
    return metric.has_numbers and metric.metric.entry.higher_is_better and range_of(metric) > 0
