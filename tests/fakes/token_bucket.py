"""A limit as providers have it: so many requests a second, and a burst of so many after a pause."""

from dataclasses import dataclass


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
