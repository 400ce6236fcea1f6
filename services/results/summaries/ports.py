"""Ports of summaries."""

from dataclasses import dataclass
from typing import Protocol

from proctor.values.run import RunState
from services.results.outcomes.ports import OutcomeStore
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.summaries.run_summary import RunSummary


class SummaryStore(Protocol):
    """Stores the summaries of closed epochs."""

    async def keep(self, plan: RunPlan, summary: RunSummary) -> RunSummary:
        """Stores the summary of a frozen epoch; returns the one that was stored first.

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
class CloseLease:
    """`starts`: how often the close of the epoch was begun, this time included.

    Withdrawn: the run was cancelled meanwhile, so no figures are to be computed.
    """

    starts: int
    is_withdrawn: bool = False


class CloseLeaseStore(Protocol):
    """Gives the close of an epoch to one replica. Leases end by the store's clock."""

    async def acquire(self, run_id: str, epoch: int, seconds: float) -> CloseLease | None:
        """None while it is leased, also by this replica."""
        ...

    async def share(self, run_id: str, epoch: int) -> float:
        """How far the replica is that holds it."""
        ...

    async def renew(self, run_id: str, epoch: int, share: float, seconds: float) -> bool:
        """Holds it from now on for so long; False where it was taken away."""
        ...

    async def withdraw(self, run_id: str, epoch: int) -> None:
        """Takes it from the replica that holds it, if one does; the next lease is withdrawn."""
        ...

    async def release(self, run_id: str, epoch: int, *, counts: bool) -> None:
        """Ends this replica's lease; the start counts, or is forgotten."""
        ...

    async def delete(self, run_id: str, epoch: int) -> None:
        """Ends this replica's lease: the summary is stored."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores that summaries and the topics above them read."""

    records: RunRecordStore
    sample_sets: SampleSetStore
    outcomes: OutcomeStore
    summaries: SummaryStore
