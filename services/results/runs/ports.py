"""What the use cases of run records need from a store."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from services.results.runs.run_counts import RunCounts
from services.results.runs.run_plan import FinalState, RunPlan, RunRecord
from services.results.standings.standing import RunStanding
from services.results.summaries.run_summary import RunSummary

ShardKey = tuple[str, int]


class RunRecordStore(Protocol):
    """Keeps the records of runs."""

    async def open(self, plan: RunPlan, epoch: int) -> RunRecord:
        """Makes the record, or opens a later epoch of it; gives what is recorded. Raises EpochOver."""
        ...

    async def find(self, run_id: str) -> RunRecord | None:
        """The record of a run."""
        ...

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardKey]) -> list[RunCounts]:
        """Counts of some runs, with those of the named shards only. A run that was deleted is left out."""
        ...

    async def all_counts(self, run: RunPlan) -> RunCounts:
        """Counts of a run with every shard of the present epoch. Raises RecordNotFound."""
        ...

    async def freeze(self, plan: RunPlan, epoch: int, state: FinalState, *, allow_partial: bool) -> None:
        """Refuses outcomes from now on and notes how the run ended.

        Raises EpochOver, EpochNotOpen, and RunIncomplete unless allowed.
        """
        ...

    async def keep_summary(self, summary: RunSummary, standing: RunStanding) -> RunSummary:
        """Keeps the figures of a frozen epoch; gives the ones that were kept first.

        In the same transaction the run takes its place on boards and in histories.
        """
        ...

    async def find_summary(self, run_id: str, epoch: int) -> RunSummary | None:
        """The figures kept for an epoch."""
        ...

    async def add_environment(self, run_id: str, environment: Mapping[str, str]) -> None:
        """Keeps what an engine says of itself."""
        ...

    async def delete(self, run_id: str) -> None:
        """Removes the record and all that hangs on it; outcomes stay, and no more of them are taken."""
        ...
