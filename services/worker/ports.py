"""What the use cases need from outside: messages that are held, where they come from, where outcomes go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.worker.backlog import Backlog, Colleague
from services.worker.shard import OutcomeBatch, Shard


class ShardMessage(Protocol):
    """A work message between its delivery and its acknowledgement."""

    @property
    def shard(self) -> Shard: ...

    @property
    def message_id(self) -> str:
        """The same for every delivery of the message; empty where it was sent without one."""

    @property
    def faults(self) -> int:
        """How many earlier deliveries ended with a worker or an engine dying."""

    async def acknowledge(self) -> None:
        """All its outcomes are held durably by the next stage."""

    async def give_back(self, delay_seconds: float) -> None:
        """Another delivery, later, to any worker; counts as a fault."""

    async def drop(self) -> None:
        """Nobody waits for it any more."""

    async def keep(self) -> None:
        """It is still worked on."""

    async def send_rest(self, samples: Sequence[int], *, faults: int) -> None:
        """A new message with these samples only, which carries its history on."""

    async def send_single(self, sample: int) -> None:
        """A new message with this sample only and no history; sent twice it is there once."""


class ShardSource(Protocol):
    """Where shards wait. A model of None stands for any model of the pool."""

    @property
    def priorities(self) -> Sequence[str]:
        """The most urgent first."""

    async def pull(self, model: str | None, rank: int) -> Sequence[ShardMessage]:
        """The next shards of the priority at this rank; none after a short wait."""

    async def backlog(self, model: str) -> Backlog | None:
        """What waits of the model; None where nothing waits and nobody holds anything."""


class Crew(Protocol):
    """The other workers of the pool."""

    async def others(self) -> Sequence[Colleague]:
        """Those that live and stay, by their last heartbeat."""


class OutcomePublisher(Protocol):
    async def publish(self, batch: OutcomeBatch, message_id: str) -> None:
        """Returns once the batch is held durably; tries again over outages with the same id."""
