"""The outcomes of a run that are asked for, by its tasks and metrics, and how long one call searches."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.contract_enum import ContractEnum
from proctor.values.metrics.names import full_name
from proctor.values.outcome import FailureClass, OutcomeStatus
from services.common.checked_fields import invalid_field
from services.results.answers.marks import Mark
from services.results.runs.run_plan import RunPlan
from services.results.statistics.metric_names import UnknownMetric

# A call that looks through outcomes ends soon after; the last window may take a little longer.
SCAN_SECONDS = 0.4
# Maximum bytes of the texts searched at a time.
WINDOW_BYTES = 4 * 1024 * 1024
WINDOW_GROWTH = 4


@dataclass(frozen=True, slots=True)
class OutcomeFilter:
    """A filter of outcomes; all conditions that are set have to match. Lengths are of answers, in characters.

    `metric`: what the scores are of; "" for the first one of each task.
    """

    row_id: str = ""
    text: str = ""
    metric: str = ""
    min_score: float | None = None
    max_score: float | None = None
    min_characters: int | None = None
    max_characters: int | None = None
    is_golden: bool = False
    failure_class: FailureClass | None = None
    is_marked_wrong: bool = False

    @property
    def mark(self) -> Mark | None:
        """The mark of all outcomes that match; None matches outcomes with and without a mark."""
        return Mark.GOLDEN if self.is_golden else Mark.WRONG if self.is_marked_wrong else None

    @property
    def is_set(self) -> bool:
        return self != NO_FILTER


@dataclass(frozen=True, slots=True)
class OutcomeMatch:
    """A filter on one run. `metrics`: by the index of a task the key of its score, None where it has none."""

    filter: OutcomeFilter
    metrics: Sequence[str | None]
    status: OutcomeStatus | None = None


class SortValue(ContractEnum):
    """The value that outcomes are sorted by. Those without it are left out: failures have only a sample."""

    SAMPLE = "sample", 1
    SCORE = "score", 2
    LENGTH = "length", 3
    TIME = "time", 4
    DISAGREEMENT = "disagreement", 5


@dataclass(frozen=True, slots=True)
class OutcomeSort:
    value: SortValue
    is_descending: bool = False


NO_FILTER = OutcomeFilter()


def task_index(plan: RunPlan, name: str) -> int:
    """The index of a task of a run. Raises InvalidParameter."""
    index = plan.task_index_named(name)
    if index is None:
        names = ", ".join(task.task for task in plan.tasks)
        raise invalid_field("task", f"must be one of the run's: {names}")
    return index


def check_filter(wanted: OutcomeFilter) -> None:
    """Raises InvalidParameter for a filter that no outcome can match."""
    low, high = wanted.min_score, wanted.max_score
    if any(bound is not None and bound != bound for bound in (low, high)):  # noqa: PLR0124  # not a number
        raise invalid_field("min_score and max_score", "must be numbers")
    if low is not None and high is not None and low > high:
        raise invalid_field("min_score", f"({low:g}) must not be above max_score ({high:g})")
    if wanted.is_golden and wanted.is_marked_wrong:
        raise invalid_field("is_golden and is_marked_wrong", "must not both be set: an answer has one mark")
    least, most = wanted.min_characters, wanted.max_characters
    if any(bound is not None and bound < 0 for bound in (least, most)):
        raise invalid_field("min_characters and max_characters", "must be 0 or more")
    if least is not None and most is not None and least > most:
        raise invalid_field("min_characters", f"({least}) must not be above max_characters ({most})")


def score_keys(
    plans: Sequence[RunPlan], wanted: OutcomeFilter, sort: OutcomeSort | None = None
) -> list[list[str | None]]:
    """Keys by run and task: what the score of an answer is kept as.

    Raises UnknownMetric where no task has it.
    """
    keys = [[_key(plan, index, wanted.metric) for index in range(len(plan.tasks))] for plan in plans]
    has_bounds = wanted.min_score is not None or wanted.max_score is not None
    is_by_score = sort is not None and sort.value is SortValue.SCORE
    if (wanted.metric or has_bounds or is_by_score) and not any(key for of_run in keys for key in of_run):
        known = dict.fromkeys(key for plan in plans for key in _known_keys(plan))
        raise UnknownMetric(
            metric=wanted.metric, supported=", ".join(known) or "none; the run keeps answers without a score"
        )
    return keys


def _key(plan: RunPlan, index: int, word: str) -> str | None:
    known = plan.scorings[index].scored_metrics
    name = full_name(word, [name for scored in known for name in scored.names])
    for scored in known:
        if scored.has_numbers and name in ("", *scored.names):
            return scored.key
    return None


def _known_keys(plan: RunPlan) -> list[str]:
    return [scored.key for task in plan.scorings for scored in task.scored_metrics if scored.has_numbers]
