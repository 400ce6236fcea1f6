"""Ports of comparisons."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from services.results.comparison.answer_pairs import SampleAnswers
from services.results.comparison.comparison import Difference, StoredDifference
from services.results.outcomes.page_bytes import BYTES_OF_NUMBERS
from services.results.runs.run_plan import PlannedTask, RunRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FlipQuery:
    """Samples of a task in two runs, after a number of the first one's; `rollouts` of each at most."""

    run_ids: tuple[str, str]
    tasks: tuple[PlannedTask, PlannedTask]
    rollouts: int
    metric: str
    after_sample: int
    limit: int


@dataclass(frozen=True, slots=True)
class FoundFlip:
    """`position` is that in the sample set of the first run. Predictions are those of the first rollouts."""

    position: int
    first: SampleAnswers
    second: SampleAnswers
    predictions: tuple[str, str]

    @property
    def bytes(self) -> int:
        """Its size in a message, without its sample."""
        return BYTES_OF_NUMBERS + sum(len(prediction.encode()) for prediction in self.predictions)


class Calls(Protocol):
    """Calls functions beside the service, which goes on meanwhile."""

    async def call(self, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        """Raises TookTooLong."""
        ...


class RunsOfModels(Protocol):
    """Finds runs by their models."""

    async def latest_runs(self, benchmark: str, models: Sequence[str]) -> Mapping[str, str]:
        """The latest completed run of each model on a benchmark; one over all its rows where there is any."""
        ...


class ComparisonStore(Protocol):
    """Stores the differences of runs."""

    async def store(self, first: RunRecord, second: RunRecord, differences: Sequence[Difference]) -> None:
        """Stores the differences of two runs in their present epochs, in place of earlier ones."""
        ...

    async def compared_with(self, run_id: str, others: Sequence[str]) -> Collection[str]:
        """The `others` that were compared, in either order, with the run as it was last closed."""
        ...


class StoredDifferences(Protocol):
    """The differences that were stored after the runs closed."""

    async def of_runs(
        self, run_ids: Sequence[str], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        """Differences over all tasks in a metric, the run named first minus the other; absent if unknown."""
        ...

    async def p_values(self, run_ids: Sequence[str], metric: str) -> Mapping[tuple[int, int], float | None]:
        """P-values of the same differences by the indexes of two runs in the list; absent if unknown."""
        ...
