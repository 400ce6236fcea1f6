"""Ports of the consumer: the source of shards, their deliveries, and the registry of workers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from proctor.values.priority import Priority
from services.worker.execution.shard import Shard


@dataclass(frozen=True, slots=True)
class ModelWork:
    """The shards of a model that are not acknowledged, at least one.

    `undelivered` of them are not delivered yet. `since` is when the oldest of these was published, or the
    oldest of all where each is delivered.
    """

    model: str
    undelivered: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PeerWorker:
    """Another worker of the pool: what it serves, and the model that it switches to."""

    ready_models: tuple[str, ...] = ()
    loading_model: str = ""

    def serves(self, model: str) -> bool:
        return not self.loading_model and model in self.ready_models


class ShardMessage(Protocol):
    """One delivery of a work message."""

    @property
    def shard(self) -> Shard: ...

    @property
    def message_id(self) -> str:
        """The same for every delivery of the message; in one epoch of its run no other message has it."""

    @property
    def trace(self) -> str:
        """The trace that it was sent in, as traceparent; empty where it is not traced."""

    @property
    def failed_deliveries(self) -> int:
        """How many earlier deliveries ended because a worker or an engine died."""

    async def acknowledge(self) -> None:
        """All its outcomes are stored durably."""

    async def nack(self, delay_seconds: float) -> None:
        """Asks for redelivery after the delay, to any worker; counts as a failed delivery."""

    async def terminate(self) -> None:
        """Removes it without redelivery: its run needs it no more."""

    async def extend_ack_deadline(self) -> None:
        """Delays redelivery, because it is still being processed."""

    async def send_rest(self, samples: Sequence[int], *, failed_deliveries: int) -> None:
        """Publishes a new message with these samples only, which carries the count on."""

    async def send_single(self, sample: int) -> None:
        """Publishes a new message with this sample only and a count of 0; repeating it adds no second one."""


class ShardSource(Protocol):
    """The queue of shards. A model of None means any model of the pool."""

    async def pull(self, model: str | None, priority: Priority) -> ShardMessage | None:
        """The next shard of the priority; None after a short wait, though the pull goes on waiting."""

    async def hold(self, model: str | None, priority: Priority) -> ShardMessage | None:
        """Leaves what comes until the next pull to other workers; the shard that has come already."""

    async def work_of(self, models: Collection[str]) -> Sequence[ModelWork]:
        """The work of the models that have any."""


class Quarantine(Protocol):
    """Executions of samples alone in a worker that have not ended: its worker or engine died meanwhile."""

    async def begin(self, shard: Shard, sample: int) -> int:
        """Counts this execution until `end`; returns the earlier ones. Raises where the count is unknown."""

    async def end(self, shard: Shard, sample: int) -> None:
        """Forgets this execution and the earlier ones."""


class WorkerRegistry(Protocol):
    async def peers(self) -> Sequence[PeerWorker]:
        """The other live workers of the pool that are not draining, by their last heartbeat."""

    async def last_switch(self) -> int | None:
        """The revision of the latest model switch in the pool; None where it is unknown."""

    async def report_switch(self, *, after: int) -> bool:
        """Reports to the peers which model this worker switches to.

        False where another worker has switched after that revision: what was decided by it no longer holds.
        """
