"""Which model of the pool the worker turns to: the one that has waited longest, after a minimum stay.
What waits of the models of a pool and who answers for them: which model a worker turns to next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.common.clock import Clock
from services.worker.consumer.ports import Backlog, Colleague, Crew, ShardSource
from services.worker.models.load_models import ModelLoader


@dataclass(frozen=True, slots=True)
class Stay:
    """How long a worker stays with its model: idle, and while its own model has work."""

    idle_seconds: float = 2.0
    least_seconds: float = 60.0


class ModelChooser:
    def __init__(
        self, source: ShardSource, crew: Crew, loader: ModelLoader, clock: Clock, stay: Stay
    ) -> None:
        self._source = source
        self._crew = crew
        self._loader = loader
        self._clock = clock
        self._stay = stay

    @property
    def look_seconds(self) -> float:
        """How often to look for another model."""
        return self._stay.idle_seconds

    async def choose(self, *, is_idle: bool) -> str | None:
        """A model to turn to; None where it is best to stay.

        An idle worker turns to what waits longest. One whose own model has work stays for the least time,
        and then leaves it only for a model that nobody serves and that has waited for as long.
        """
        if not is_idle and self._loader.stayed_seconds < self._stay.least_seconds:
            return None
        backlogs = await self._backlogs()
        return self._pick(backlogs, await self._crew.others(), is_idle=is_idle) if backlogs else None

    async def is_agreed(self, model: str, *, is_idle: bool) -> bool:
        """Whether to turn to it still, now that the others know; those that come after us yield."""
        others = [
            other for other in await self._crew.others() if other.comes_first or not other.loading_model
        ]
        return self._pick(await self._backlogs(), others, is_idle=is_idle) == model

    def _pick(self, backlogs: Sequence[Backlog], others: Sequence[Colleague], *, is_idle: bool) -> str | None:
        if not is_idle:
            return oldest(unserved(backlogs, others), before=self._ago(self._stay.least_seconds))
        needs_a_hand = oldest(behind(backlogs, others), before=self._ago(self._stay.idle_seconds))
        return oldest(unserved(backlogs, others)) or needs_a_hand

    async def _backlogs(self) -> Sequence[Backlog]:
        """Of the models that the worker does not answer for."""
        ready = self._loader.ready_models
        others = [
            model for model in self._loader.models if model not in ready and self._loader.may_load(model)
        ]
        backlogs = [await self._source.backlog(model) for model in others]
        return [backlog for backlog in backlogs if backlog is not None]

    def _ago(self, seconds: float) -> datetime:
        return self._clock.now() - timedelta(seconds=seconds)


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
