"""How many samples wait in a worker beyond those it asks: what it gets through while more is on its way."""

from __future__ import annotations

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
