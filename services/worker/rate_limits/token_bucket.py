"""Lets amounts through at a rate that may change at any time."""

from __future__ import annotations

from aiolimiter import AsyncLimiter

# What may go out at once after a pause. Short: many workers share what the provider allows in one burst.
_BURST_SECONDS = 0.1
_SLOWEST = 1e-3
_NOTHING = 1e-9


class RateBucket:
    """aiolimiter's bucket has one rate for life, so it holds seconds: amount / rate of them."""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._seconds = AsyncLimiter(_BURST_SECONDS, _BURST_SECONDS)

    @property
    def rate(self) -> float | None:
        """Per second; None while everything goes through."""
        return self._rate

    def set_rate(self, rate: float | None) -> None:
        self._rate = None if rate is None else max(rate, _SLOWEST)

    async def take(self, amount: float) -> None:
        """For one caller at a time. A rate that changes meanwhile holds for the rest of the amount."""
        left = amount
        while left > _NOTHING and (rate := self._rate) is not None:
            seconds = min(left / rate, _BURST_SECONDS)
            await self._seconds.acquire(seconds)
            left -= seconds * rate
