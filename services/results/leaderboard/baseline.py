"""Baselines without a model: a random choice, always the most frequent answer, always the longest choice.

Each becomes answers as a model would give them, and these are scored as any others.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.scoring import OutputType
from services.results.outcomes.outcome import ScoredRow
from services.results.runs.run_plan import PlannedTask
from services.results.scoring.compiled_scoring import CompiledScoring, metric_names
from services.results.scoring.ports import AnswerToScore, Scored
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.statistics.figure import Figure
from services.results.summaries.task_columns import TaskColumns, cluster_numbers

RANDOM = "random"
MAJORITY = "majority"
LONGEST = "longest"
# Bounds the memory: the texts of a task with free answers may all be different.
MAX_TEXTS = 10_000

# Baseline, then metric. A figure is undefined where the baseline makes no sense for the task.
TaskBaselines = Mapping[str, Mapping[str, Figure]]


def undefined_baselines(scoring: CompiledScoring, sample_count: int) -> TaskBaselines:
    """Baselines of samples that no answer can be scored on."""
    undefined = dict.fromkeys(metric_names(scoring), Figure(n=sample_count))
    return dict.fromkeys((RANDOM, MAJORITY, LONGEST), undefined)


class MajorityCount:
    """Counts right answers: indexes of choices, or texts where a task has no choices.

    Of texts those are counted that were seen first: what is frequent is among them, however many there are.
    """

    def __init__(self) -> None:
        self._choices: Counter[int] = Counter()
        self._texts: Counter[str] = Counter()

    def add(self, targets: Iterable[ScoringTarget]) -> None:
        for target in targets:
            for choice in _right_choices(target):
                self._choices[choice] += 1
            for text in target.texts[:1]:
                if self._is_counted(text):
                    self._texts[text] += 1

    def _is_counted(self, text: str) -> bool:
        return len(self._texts) < MAX_TEXTS or text in self._texts

    @property
    def is_of_all_different_texts(self) -> bool:
        """All of several are equally frequent."""
        return len(self._texts) > 1 and max(self._texts.values()) == 1

    @property
    def choice(self) -> int:
        """The most frequent right choice; of equally frequent ones the first in the list."""
        return min(self._choices, key=lambda choice: (-self._choices[choice], choice), default=0)

    @property
    def text(self) -> str:
        """The most frequent right text; of equally frequent ones the one seen first."""
        return max(self._texts, key=self._texts.__getitem__, default="")


@dataclass(frozen=True, slots=True)
class BaselineAnswer:
    baseline: str
    sample: int
    rollout: int
    to_score: AnswerToScore


class BaselineColumns:
    """The scores of the baselines on a task, gathered chunk by chunk.

    Random gives every choice of a sample once, as if these were rollouts: the mean over them is what a draw
    can expect, and a figure over labels (f1, mcc) is that of the expected table of labels.
    """

    def __init__(self, scoring: CompiledScoring, majority: MajorityCount, label_count: int = 0) -> None:
        self._scoring = scoring
        self._majority = majority
        self._columns = {name: TaskColumns(scoring, label_count) for name in self._names()}

    def answers(self, targets: Iterable[tuple[int, ScoringTarget]]) -> list[BaselineAnswer]:
        """Answers to targets by the number of their sample. Raises ScoringImpossible."""
        return [
            BaselineAnswer(name, sample, rollout, AnswerToScore(target, answer))
            for sample, target in targets
            for name, answers in self._answers(target).items()
            for rollout, answer in enumerate(answers)
        ]

    def add(self, answers: Sequence[BaselineAnswer], scores: Sequence[Scored]) -> None:
        """Raises ScoringImpossible where an answer has no score."""
        rows: dict[str, list[ScoredRow]] = defaultdict(list)
        for one, score in zip(answers, scores, strict=True):
            if isinstance(score, ScoringImpossible):
                raise score
            rows[one.baseline].append((one.sample, one.rollout, score.scores))
        for name, scored in rows.items():
            self._columns[name].add_rows(scored)

    def figures(self, task: PlannedTask, clusters: Mapping[int, str]) -> TaskBaselines:
        """An expectation has no error; the others are figures over these samples."""
        numbers = cluster_numbers(task, clusters)
        found = {
            name: columns.metric_figures(has_rollouts=name == RANDOM, clusters=numbers)
            for name, columns in self._columns.items()
        }
        if RANDOM in found:
            found[RANDOM] = self._expected(found[RANDOM])
        return {**undefined_baselines(self._scoring, task.sample_count), **found}

    def _expected(self, figures: Mapping[str, Figure]) -> dict[str, Figure]:
        """Figures without pass@k.

        Undefined where rollouts vote, since the choices here are draws and no rollouts.
        """
        return {
            scored.key: Figure(
                mean=None if scored.pipeline.is_majority else figures[scored.key].mean,
                n=figures[scored.key].n,
            )
            for scored in self._scoring.scored_metrics
        }

    def _names(self) -> Sequence[str]:
        is_text = self._scoring.output_type is OutputType.GENERATE_UNTIL
        return (MAJORITY,) if is_text else (RANDOM, MAJORITY, LONGEST)

    def _answers(self, target: ScoringTarget) -> Mapping[str, Sequence[Answer]]:
        if self._scoring.output_type is OutputType.GENERATE_UNTIL:
            return {MAJORITY: [Answer(self._majority.text)]}
        texts = target.texts_of_choices(self._scoring.target_delimiter)
        most_frequent = self._majority.choice if self._majority.choice < len(texts) else 0
        longest = max(range(len(texts)), key=lambda choice: len(texts[choice]), default=0)
        return {
            RANDOM: [_choosing(choice, texts) for choice in range(len(texts))],
            MAJORITY: [_choosing(most_frequent, texts)],
            LONGEST: [_choosing(longest, texts)],
        }


def _choosing(choice: int, texts: Sequence[str]) -> Answer:
    """Says the choice, and takes all others for impossible."""
    if not texts:
        raise ScoringImpossible("the sample has no choices")
    is_chosen = tuple(position == choice for position in range(len(texts)))
    scores = tuple(ChoiceScore(0.0 if chosen else -math.inf, chosen) for chosen in is_chosen)
    return Answer(texts[choice], choices=scores)


def _right_choices(target: ScoringTarget) -> Sequence[int]:
    if target.right_choices:
        return target.right_choices
    return () if target.choice is None else (target.choice,)
