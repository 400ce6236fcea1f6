"""Ports of dispatch: the stream that carries shards, and the record in results."""

from collections.abc import Collection, Sequence
from typing import Protocol

from proctor.values.run import RunCounts, RunId, RunState
from services.scheduler.planning.ports import ClosingProgress, MissingSamples
from services.scheduler.planning.shard import FilledShard, Shard
from services.scheduler.progress.progress_tracker import ProgressReport
from services.scheduler.runs.lifecycle.run import PlannedTask, Run


class ShardStream(Protocol):
    """The streams of shards to workers and of outcomes to results."""

    async def fill(
        self, run: Run, tasks: Sequence[PlannedTask], shards: Sequence[Shard]
    ) -> Sequence[FilledShard]:
        """Reads the samples of the shards from results; only of the first shards if they are large."""
        ...

    async def publish(self, run: Run, shards: Sequence[FilledShard]) -> None:
        """Returns once the stream has stored all of them. Raises `MessageTooLarge`, as `fill` does."""
        ...

    async def pending_work(self, run: Run) -> int:
        """Messages that wait for a worker or are in flight."""
        ...

    async def pending_outcomes(self, run_id: RunId) -> int: ...

    async def purge_work(self, run: Run) -> None: ...

    async def purge_leftovers(self, run_ids: Collection[RunId], pools: Sequence[str]) -> None:
        """Removes what workers sent back of closed runs."""
        ...

    async def max_bytes(self, pool: str) -> float:
        """Capacity of the pool's stream in bytes; beyond that it takes nothing."""
        ...

    async def stream_generation(self, pools: Sequence[str]) -> str:
        """Changes when a stream was recreated, so that its messages were lost."""
        ...


class ClosableRecord(MissingSamples, Protocol):
    """The record of a run in results, as it fills and is closed. Every call is repeatable."""

    async def counts(self, run_id: RunId) -> ProgressReport: ...

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool
    ) -> RunCounts | ClosingProgress | None:
        """Closes the run in its final state, which may replace that of an earlier call.

        Returns the counts of its summary, or how far that is; None if results has no such run.
        """
        ...

    async def failure_example(self, run_id: RunId, failure_class: str) -> str:
        """The message of one sample that failed by that class; empty if none has."""
        ...
