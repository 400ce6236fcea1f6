"""What dispatch needs: the store of shards, and the stream that carries them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.shard import FilledShard, Shard
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.run import Run, RunId


@dataclass(frozen=True, slots=True)
class ShardMoves:
    """Shards that are done, and shards that go out with these attempts."""

    done: Sequence[int] = ()
    dispatched: Sequence[Shard] = ()

    def __bool__(self) -> bool:
        return bool(self.done or self.dispatched)


class ShardStore(Protocol):
    """Shards of planned runs, of their current epoch."""

    async def planned(self, run: Run, after: int, limit: int) -> Sequence[Shard]:
        """Shards that wait to be dispatched, with numbers above `after`, in order."""
        ...

    async def dispatched(self, run: Run) -> Sequence[Shard]: ...

    async def move(self, token: FencingToken, run: Run, moves: ShardMoves) -> bool:
        """False, and nothing done, when the run is no longer running in this epoch."""
        ...

    async def return_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> None:
        """Dispatched shards wait again, with the samples given here."""
        ...


class ShardStream(Protocol):
    """The way of shards to workers and of outcomes to results."""

    async def fill(
        self, run: Run, tasks: Sequence[PlannedTask], shards: Sequence[Shard]
    ) -> Sequence[FilledShard]:
        """Reads the samples of the shards back from results: of the first ones only where they are heavy."""
        ...

    async def publish(self, run: Run, shards: Sequence[FilledShard]) -> None:
        """Returns when the stream holds them all. Raises `MessageTooLarge`, as `fill` does."""
        ...

    async def pending_work(self, run_id: RunId) -> int:
        """Messages that wait for a worker or are held by one."""
        ...

    async def pending_outcomes(self, run_id: RunId) -> int: ...

    async def purge_work(self, run_id: RunId) -> None: ...

    async def stream_generation(self) -> str:
        """Changes when a stream was made anew, and messages were lost with the old one."""
        ...
