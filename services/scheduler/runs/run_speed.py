"""How fast a run goes, and how fast and how slowly it went of late: the time that is left is told from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunSpeed:
    """Per second, over the last seconds. `fastest` and `slowest` are samples per second of late."""

    samples: float
    tokens: float
    fastest: float
    slowest: float


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds until done: as fast as it goes now, and if all goes as at its best and at its worst of late."""

    seconds: float
    low: float
    high: float


def time_left(missing: int, speed: RunSpeed | None) -> TimeLeft | None:
    """None while nothing tells: nothing was measured, or nothing comes."""
    if speed is None or not speed.samples:
        return None
    return TimeLeft(missing / speed.samples, missing / speed.fastest, missing / speed.slowest)
