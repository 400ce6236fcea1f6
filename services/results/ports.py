"""What the use cases need of the outside."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from proctor.values.scoring import ScoringMethod
from services.results.comparisons.comparison import Difference
from services.results.comparisons.flip import FlipQuery, FoundFlip
from services.results.comparisons.pair_differences import PairsByMetric
from services.results.comparisons.stored_difference import StoredDifference
from services.results.exports.exported_lines import LineChunk, WantedLines
from services.results.exports.marked_file import FileMark, MarkedFile
from services.results.outcomes.outcome import ListedOutcome, OutcomeKey
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.standings.baseline import TaskBaselines
from services.results.standings.board import BoardEntry
from services.results.standings.history_token import HistoryKey
from services.results.standings.standing import ClosedRun, SuiteBaselines


class ExportedOutcomes(Protocol):
    """Recorded outcomes on their way into files."""

    def chunks(
        self, plan: RunPlan, task_index: int, *, has_docs: bool
    ) -> AsyncIterator[Sequence[ListedOutcome]]:
        """By sample and rollout, a few megabytes at a time; the rows of samples only where asked for."""
        ...


class ExportedLines(Protocol):
    """Lines of exports, whole ones."""

    def chunks(self, wanted: WantedLines, after: OutcomeKey) -> AsyncGenerator[LineChunk]:
        """By sample and rollout, about a megabyte at a time, what comes after a key.

        Raises RunChanged where the run was opened again meanwhile.
        """
        ...


class ExportMarks(Protocol):
    """Keeps how many bytes files of closed runs have up to some outcomes."""

    async def end(self, file: MarkedFile) -> FileMark | None:
        """Where a file ends; None where it was never made to its end."""
        ...

    async def last(self, file: MarkedFile, up_to_byte: int | None) -> FileMark:
        """The last place in a file, or at or before some byte of it, from which it can be made."""
        ...

    async def add(self, file: MarkedFile, mark: FileMark) -> None:
        """Keeps a mark; one that is kept already stays."""
        ...


class BoardStore(Protocol):
    """Reads boards: complete runs by suite, metric, model and terms. The cost does not grow with the runs."""

    async def metrics(self, suite: str, project_id: int | None) -> list[str]:
        """Metrics of the complete runs of a suite; of one project where one is given."""
        ...

    async def entries(
        self, suite: str, metric: str, project_id: int | None, *, is_best: bool
    ) -> list[BoardEntry]:
        """The latest (or best) complete run of each model on each of its terms."""
        ...

    async def baselines(self, run_ids: Sequence[str]) -> SuiteBaselines:
        """Those of the newest of some runs whose baselines are computed; none where there is no such run."""
        ...


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Closed runs of a suite and a model ("" for all) since a moment, newest first, that come after a key."""

    suite: str
    model: str
    since: datetime
    after: HistoryKey
    page_size: int


class HistoryStore(Protocol):
    """Reads histories of closed runs."""

    async def page(self, page: HistoryPage) -> list[ClosedRun]:
        """The runs of a page."""
        ...

    async def count(self, page: HistoryPage) -> int:
        """Runs over all pages."""
        ...


class BaselineStore(Protocol):
    """Keeps what needs no model: of sample sets, and of the suites of closed runs."""

    async def runs_without(self, most: int) -> list[str]:
        """Complete runs whose baselines are to be computed, newest first."""
        ...

    async def keep_for_run(self, run_id: str, baselines: SuiteBaselines) -> None:
        """Keeps the baselines of a run's suite by name."""
        ...

    async def find(self, task: PlannedTask, method: ScoringMethod | None) -> TaskBaselines | None:
        """What was kept for the task's sample set, scored as this task is."""
        ...

    async def keep(self, task: PlannedTask, method: ScoringMethod | None, baselines: TaskBaselines) -> None:
        """Keeps the baselines of a task's sample set; the first ones stay."""
        ...


class PairStore(Protocol):
    """Pairs the answers of two runs by their samples."""

    async def pairs(
        self, first: RunPlan, second: RunPlan, metrics: Mapping[str, Sequence[str]]
    ) -> PairsByMetric:
        """What both scored in the metrics of some tasks, which both runs have."""
        ...

    async def flips(self, query: FlipQuery) -> list[FoundFlip]:
        """Samples that both answered and that may be scored differently, in the order of the first run."""
        ...

    async def latest_runs(self, suite: str, models: Sequence[str]) -> Mapping[str, str]:
        """The latest completed run of each model on a suite; one over all its rows where there is any."""
        ...


class ComparisonStore(Protocol):
    """Keeps what runs prove about each other."""

    async def waiting(self, most: int) -> list[str]:
        """Completed runs that were not compared since they were closed, the first one first."""
        ...

    async def previous_run(self, run: RunPlan) -> str | None:
        """The complete run of the same model on the same terms before this one."""
        ...

    async def keep(self, first: RunRecord, second: RunRecord, differences: Sequence[Difference]) -> None:
        """Keeps the differences of two runs in their present epochs, in place of earlier ones."""
        ...

    async def compared_with(self, run_id: str, others: Sequence[str]) -> Collection[str]:
        """Those of the others that the run, as it was last closed, was compared with, in either order."""
        ...

    async def mark_compared(self, run: RunRecord) -> None:
        """The run waits no more."""
        ...


class PairComparer(Protocol):
    """Compares runs whose comparison is not kept."""

    async def __call__(self, first_run_id: str, second_run_id: str) -> None:
        """Keeps what two closed runs prove about each other; what cannot be compared is left as it is."""
        ...


class StoredDifferences(Protocol):
    """What runs were found to prove about each other after they were closed."""

    async def of_runs(
        self, run_ids: Sequence[str], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        """Suite-level differences of a metric, the run named earlier minus the later; absent if unknown."""
        ...

    async def p_values(self, run_ids: Sequence[str], metric: str) -> Mapping[tuple[int, int], float | None]:
        """Of the same by the places of two runs in the list, the earlier one first; absent if unknown."""
        ...
