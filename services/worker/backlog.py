"""What waits of the models of a pool and who answers for them: which model a worker turns to next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


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


def unserved(backlogs: Sequence[Backlog], others: Sequence[Colleague]) -> Sequence[Backlog]:
    """Those of models that no other worker answers for or turns to."""
    return [backlog for backlog in backlogs if not _is_served(backlog.model, others)]


def behind(backlogs: Sequence[Backlog], others: Sequence[Colleague]) -> Sequence[Backlog]:
    """Those where more waits than workers are on the way to it: one message is worth one more worker."""
    return [backlog for backlog in backlogs if backlog.waiting > _turning_to(backlog.model, others)]


def oldest(backlogs: Sequence[Backlog], *, before: datetime | None = None) -> str | None:
    """The model that has waited longest; with a time, only if it has waited since before that."""
    old_enough = [backlog for backlog in backlogs if before is None or backlog.since <= before]
    return min(old_enough, key=lambda backlog: backlog.since).model if old_enough else None


def _is_served(model: str, others: Sequence[Colleague]) -> bool:
    return any(other.answers_for(model) or other.loading_model == model for other in others)


def _turning_to(model: str, others: Sequence[Colleague]) -> int:
    return sum(other.loading_model == model for other in others)
