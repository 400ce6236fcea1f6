"""What the use cases need from outside: messages that are held, where they come from, where outcomes go.
What waits of the models of a pool and who answers for them: which model a worker turns to next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.worker.consumer.in_flight import ShardMessage


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


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages of a model that are not acknowledged, at least one.

    `waiting` of them were delivered to nobody yet; `since` is when the oldest of these was sent, or the
    oldest of all where none waits.
    """

    model: str
    waiting: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Colleague:
    """Another worker of the pool: what it answers for, and what it turns to.

    Of two that turn to the same model at once the one that `comes_first` goes on.
    """

    ready_models: tuple[str, ...] = ()
    loading_model: str = ""
    comes_first: bool = False

    def answers_for(self, model: str) -> bool:
        return not self.loading_model and model in self.ready_models
