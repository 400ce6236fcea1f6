"""How fast a run is, how fast and slow it was lately, and the time left that follows from it."""

from collections import deque
from dataclasses import dataclass, field

from proctor.values.run import RunCounts

# Results reports several times a second; ten seconds even out answers that arrive in batches.
WINDOW_SECONDS = 10.0
MIN_WINDOW_SECONDS = 0.5
# Shorter stretches would show the chance of single answers as the fastest and the slowest.
STRETCH_SECONDS = 5.0
STRETCHES_KEPT_SECONDS = 120.0

# An estimate from one past run or one measured speed may be wrong by this factor, up or down.
LONE_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class RunSpeed:
    """Per second, over the last seconds. `fastest` and `slowest` are recent speeds in samples."""

    samples: float
    tokens: float
    fastest: float
    slowest: float


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds left at the present speed, and at the fastest and slowest recent speeds."""

    seconds: float
    low: float
    high: float


def time_left(missing: int, speed: RunSpeed | None) -> TimeLeft | None:
    """None if nothing was measured, or nothing arrives."""
    if speed is None or not speed.samples:
        return None
    return TimeLeft(missing / speed.samples, missing / speed.fastest, missing / speed.slowest)


@dataclass(frozen=True, slots=True)
class _Mark:
    at: float
    samples: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    end: float
    samples_per_second: float


@dataclass(slots=True)
class SpeedMeter:
    """Counts of one epoch over time. The speed is that of the last ten seconds.

    The fastest and the slowest are found among it and the stretches of the last two minutes. A stretch goes
    from one report to the first one at least five seconds later with more: it grows while nothing
    comes, so its speed is never 0. As long as there was no whole one, they are twice and half the speed.
    """

    _window: deque[_Mark] = field(default_factory=deque)
    _stretches: deque[_Stretch] = field(default_factory=deque)
    _start: _Mark | None = None

    def clear(self) -> None:
        """Another epoch begins."""
        self._window.clear()
        self._stretches.clear()
        self._start = None

    def add(self, now: float, counts: RunCounts) -> None:
        mark = _Mark(now, counts.recorded, counts.usage.completion_tokens)
        self._window.append(mark)
        self._drop_old(now)
        start = self._start
        if start is None or now - start.at > STRETCHES_KEPT_SECONDS:
            self._start = mark
        elif mark.samples > start.samples and now - start.at >= STRETCH_SECONDS:
            speed = (mark.samples - start.samples) / (now - start.at)
            self._stretches.append(_Stretch(now, speed))
            self._start = mark

    def speed(self, now: float) -> RunSpeed | None:
        """None until there are enough reports."""
        self._drop_old(now)
        if not self._window or now - self._window[0].at < MIN_WINDOW_SECONDS:
            return None
        first, last = self._window[0], self._window[-1]
        # Up to now and not to the last report: silence makes a run slower.
        seconds = now - first.at
        samples = (last.samples - first.samples) / seconds
        # A report of as many samples may be an older one, with fewer tokens.
        tokens = max(last.tokens - first.tokens, 0) / seconds
        if not self._stretches:
            return RunSpeed(samples, tokens, samples * LONE_FACTOR, samples / LONE_FACTOR)
        recent = [samples, *(stretch.samples_per_second for stretch in self._stretches)]
        return RunSpeed(samples, tokens, max(recent), min(recent))

    def _drop_old(self, now: float) -> None:
        while self._window and self._window[0].at < now - WINDOW_SECONDS:
            self._window.popleft()
        while self._stretches and self._stretches[0].end < now - STRETCHES_KEPT_SECONDS:
            self._stretches.popleft()
