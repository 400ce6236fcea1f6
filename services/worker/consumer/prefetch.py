"""Decides when the worker pulls more shards: while there is room, the highest priority first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from services.common.clock import Clock

_ON_ITS_WAY_SECONDS = 0.25
_MEASURED_SECONDS = 0.25


class ReadAhead:
    """A fast engine would wait for each pull. What waits behind a slow one, another worker could ask."""

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._finished = 0
        self._per_second = 0.0
        self._since = clock.monotonic()

    def finish(self, samples: int) -> None:
        self._finished += samples

    def samples(self) -> int:
        now = self._clock.monotonic()
        if now - self._since >= _MEASURED_SECONDS:
            self._per_second = self._finished / (now - self._since)
            self._finished, self._since = 0, now
        return min(self._most, int(self._per_second * _ON_ITS_WAY_SECONDS))


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """Samples that are asked, those that wait besides at most, and those of shards not yet acknowledged."""

    asked: int
    ahead: int
    held: int

    @classmethod
    def for_concurrency(cls, concurrency: int) -> IntakeLimits:
        """Enough ahead that the engine never waits for a pull, and no more than that."""
        ahead = max(1, min(64, concurrency // 2))
        return cls(asked=concurrency, ahead=ahead, held=2 * (concurrency + ahead) + 64)


class Intake:
    def __init__(self, limits: IntakeLimits, ranks: int, clock: Clock) -> None:
        self.unfinished = 0
        self.held = 0
        self._aside = 0
        self._limits = limits
        self._ahead = ReadAhead(limits.ahead, clock)
        # By rank: the models whose last pull brought something.
        self._flowing: list[set[str | None]] = [set() for _ in range(ranks)]
        self._changed = asyncio.Event()
        self.closed = asyncio.Event()

    def open(self) -> None:
        """Lets shards in again, of other models maybe."""
        for flowing in self._flowing:
            flowing.clear()
        self.closed.clear()

    def close(self) -> None:
        """Lets no more in: the model is to be swapped, the engine started again, or the worker stops."""
        self.closed.set()
        self._changed.set()

    def take(self, unfinished: int, held: int) -> None:
        self.unfinished += unfinished
        self.held += held

    def finish(self, samples: int) -> None:
        """Samples that were asked."""
        self._ahead.finish(samples)
        self.leave(samples)

    def leave(self, samples: int) -> None:
        """Samples that are not asked here any more."""
        self.unfinished -= samples
        self._changed.set()

    def release(self, samples: int) -> None:
        """Samples of a shard that is not held any more."""
        self.held -= samples
        self._changed.set()

    @contextmanager
    def aside(self, unfinished: int, held: int) -> Iterator[None]:
        """Samples that are held and not asked: others come in meanwhile."""
        self.take(-unfinished, -held)
        self._aside += held
        self._changed.set()
        try:
            yield
        finally:
            self.take(unfinished, held)
            self._aside -= held

    def report(self, rank: int, model: str | None, *, came: bool) -> None:
        """Whether the last pull of this rank and model brought anything."""
        flowing = self._flowing[rank]
        if came != (model in flowing):
            flowing.symmetric_difference_update((model,))
            self._changed.set()

    def is_idle(self) -> bool:
        return self.held == 0 and not any(self._flowing)

    async def turn(self, rank: int) -> bool:
        """Waits until there is room and nothing more urgent is coming in; false when the intake is closed."""
        while not self.closed.is_set():
            if self._may_take(rank):
                return True
            self._changed.clear()
            await self._changed.wait()
        return False

    async def until_empty(self) -> None:
        while self.held + self._aside:
            self._changed.clear()
            await self._changed.wait()

    def _may_take(self, rank: int) -> bool:
        room = self._limits.asked + self._ahead.samples()
        has_room = self.unfinished < room and self.held < self._limits.held
        return has_room and not any(self._flowing[:rank])
