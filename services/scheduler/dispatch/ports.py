"""Ports of dispatch: the stream that carries shards, and the record in results."""

from collections.abc import Collection, Sequence
from typing import Protocol

from proctor.values.comparison import Decision
from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.usage import TokenUsage
from services.scheduler.planning.ports import ClosingProgress, MissingSamples
from services.scheduler.planning.shard import FilledShard, MissingSample, Shard
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

    async def runs_with_work(self, pools: Sequence[str]) -> Collection[RunId]:
        """The runs of messages that wait for a worker or are in flight."""
        ...

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

    async def counts(self, run_id: RunId, *, includes_shards: bool = False) -> ProgressReport: ...

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool, unscored: TokenUsage
    ) -> RunCounts | ClosingProgress | None:
        """Closes the run in its final state, which may replace that of an earlier call.

        Its usage is that of its outcomes and of what was `unscored`.
        Returns the counts of its summary, or how far that is; None if results has no such run.
        """
        ...

    async def decide(self, run: Run) -> Decision | None:
        """What is decided between a run and the other one of its order; None while nothing is."""
        ...

    async def failure_example(self, run_id: RunId, failure_class: str) -> str:
        """The message of one sample that failed by that class; empty if none has."""
        ...


class RolloutUse(Protocol):
    """Tokens of rollouts, as their workers report them before each step and where they leave one."""

    async def has_any(self, run: Run) -> bool:
        """Whether a rollout of this epoch has begun."""
        ...

    async def settle(self, run: Run, missing: Sequence[MissingSample]) -> bool:
        """Takes the rollouts of this epoch that have no outcome for unscored, and no others of it.

        Returns whether workers have left all of them.
        """
        ...

    async def unscored(self, run: Run, in_flight: Sequence[Shard] = ()) -> TokenUsage:
        """Tokens of unscored rollouts of all epochs, and of those of this epoch that are in flight."""
        ...
