"""A limit as providers have it: so many requests a second, and a burst of so many after a pause."""

import email.utils
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass
class TokenBucket:
    rate: float
    burst: float
    level: float = 0.0
    at: float = 0.0

    @classmethod
    def full(cls, rate: float, burst: float, now: float) -> "TokenBucket":
        return cls(rate, burst, burst, now)

    def take(self, now: float) -> bool:
        """False: refused."""
        self._fill(now)
        if self.level < 1:
            return False
        self.level -= 1
        return True

    def seconds_to_next(self, now: float) -> float:
        self._fill(now)
        return max(0.0, (1 - self.level) / self.rate)

    def _fill(self, now: float) -> None:
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now


@dataclass
class RateLimit:
    """A server's limit, and what a refusal says of the wait, in whole seconds as HTTP has it."""

    bucket: TokenBucket
    tells: Literal["nothing", "seconds", "date"] = "nothing"
    clock: Callable[[], float] = time.time

    @classmethod
    def ordered(cls, order: Mapping[str, Any]) -> "RateLimit":
        """{"rate": 50, "burst": 50, "tells": "seconds"}"""
        bucket = TokenBucket.full(order["rate"], order.get("burst", order["rate"]), time.time())
        return cls(bucket, order.get("tells", "nothing"))

    def take(self) -> bool:
        return self.bucket.take(self.clock())

    def retry_after(self) -> str | None:
        now = self.clock()
        seconds = math.ceil(self.bucket.seconds_to_next(now))
        match self.tells:
            case "seconds":
                return str(seconds)
            case "date":
                return email.utils.formatdate(math.ceil(now) + seconds, usegmt=True)
            case _:
                return None
