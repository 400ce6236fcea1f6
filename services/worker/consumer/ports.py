"""What the consumer needs from outside: where shards wait, and which other workers serve the pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from proctor.values.priority import Priority
from services.worker.consumer.in_flight import ShardMessage


@dataclass(frozen=True, slots=True)
class Backlog:
    """The unacknowledged messages of a model, at least one.

    `waiting` of them are not delivered yet. `since` is when the oldest of these was published, or the oldest
    of all where none waits.
    """

    model: str
    waiting: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PeerWorker:
    """Another worker of the pool: what it serves, and the model that it switches to.

    If two workers switch to the same model at once, the one with `has_precedence` continues.
    """

    ready_models: tuple[str, ...] = ()
    loading_model: str = ""
    has_precedence: bool = False

    def serves(self, model: str) -> bool:
        return not self.loading_model and model in self.ready_models


class ShardSource(Protocol):
    """Where shards wait. A model of None means any model of the pool."""

    async def pull(self, model: str | None, priority: Priority) -> Sequence[ShardMessage]:
        """The next shards of the priority; none after a short wait."""

    async def backlog(self, model: str) -> Backlog | None:
        """None where no message of the model is unacknowledged."""


class WorkerRegistry(Protocol):
    async def peers(self) -> Sequence[PeerWorker]:
        """The other live workers of the pool that are not draining, by their last heartbeat."""
