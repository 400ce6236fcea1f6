"""How long requests wait: exponential backoff after failures, and a token bucket for a rate."""

import asyncio
import random
from dataclasses import dataclass

# A longer Retry-After is cut to this: it may be wrong, or the limit may be lifted earlier.
MAX_RETRY_AFTER_SECONDS = 60.0
# Far above `max_seconds`; it keeps the power of two a number that a float holds.
_MAX_DOUBLINGS = 30
# How much may be taken at once after a pause. Short: many workers share one burst of the provider.
_BURST_SECONDS = 0.1
# A rate of 0 would wait for ever, also after the quota has grown.
_MIN_RATE = 1e-3
# Tolerance for rounding in the token bucket.
_ROUNDING = 1e-9


def capped_retry_after(seconds: float) -> float:
    return min(seconds, MAX_RETRY_AFTER_SECONDS)


@dataclass(frozen=True, slots=True)
class Backoff:
    """A random wait below a bound that starts at `first_seconds` and doubles up to `max_seconds`."""

    first_seconds: float = 0.5
    max_seconds: float = 20.0

    def seconds(self, failures: int) -> float:
        """How long to wait after the n-th failure in a row, counted from 1."""
        bound = self.first_seconds * 2 ** min(failures - 1, _MAX_DOUBLINGS)
        # Full jitter: workers that failed together do not come back together.
        return random.uniform(0, min(bound, self.max_seconds))


class TokenBucket:
    """It counts seconds, amount / rate of them, so that a new rate applies to the rest of an amount."""

    def __init__(self) -> None:
        self._rate: float | None = None
        # The time of the loop at which all that was taken is refilled.
        self._full_at = 0.0

    @property
    def rate(self) -> float | None:
        """Per second; None while it does not limit."""
        return self._rate

    def set_rate(self, rate: float | None) -> None:
        self._rate = None if rate is None else max(rate, _MIN_RATE)

    async def take(self, amount: float) -> None:
        """Waits until the amount may be used. Call it from one task at a time."""
        loop, left = asyncio.get_running_loop(), amount
        while left > _ROUNDING and (rate := self._rate) is not None:
            seconds = min(left / rate, _BURST_SECONDS)
            # Negative after a pause, and then it only yields.
            await asyncio.sleep(self._full_at + seconds - _BURST_SECONDS - loop.time())
            self._full_at = max(self._full_at, loop.time()) + seconds
            left -= seconds * rate
