"""Which model of the pool the worker turns to: the one that has waited longest, after a minimum stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.common.clock import Clock
from services.worker.backlog import Backlog, Colleague, behind, oldest, unserved
from services.worker.load_models import ModelLoader
from services.worker.ports import Crew, ShardSource


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
