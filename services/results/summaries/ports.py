"""Ports of summaries."""

from dataclasses import dataclass
from typing import Protocol

from proctor.values.run import RunState
from services.results.outcomes.ports import OutcomeStore
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.summaries.run_summary import RunSummary


class ArchiveSteps(Protocol):
    """Moves outcomes of closed runs to the object store and back, some at each call."""

    async def archive(self, run_id: str) -> bool:
        """True once all of it is done."""
        ...

    async def restore(self, run_id: str) -> bool:
        """True once all of it is done."""
        ...

    async def size_bytes(self, run_id: str) -> int:
        """Nearly what the outcomes of a run take in Postgres."""
        ...


class SummaryStore(Protocol):
    """Stores the summaries of closed epochs."""

    async def keep(self, plan: RunPlan, summary: RunSummary, *, replaces: bool = False) -> RunSummary:
        """Stores the summary of a frozen epoch; returns the one that was stored first, unless it replaces it.

        The run enters leaderboards and histories in the same transaction.
        """
        ...

    async def change_state(self, plan: RunPlan, summary: RunSummary, state: RunState) -> None:
        """Stores another final state of a closed epoch, and lists the run anew."""
        ...

    async def add_problem(self, run_id: str, epoch: int, problem: str) -> None:
        """Adds to what could not be computed, where the summary does not name it yet."""
        ...

    async def find(self, run_id: str, epoch: int) -> RunSummary | None:
        """The summary stored for an epoch."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores that summaries and the topics above them read."""

    records: RunRecordStore
    sample_sets: SampleSetStore
    outcomes: OutcomeStore
    summaries: SummaryStore
