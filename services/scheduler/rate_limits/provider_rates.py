"""How fast providers are asked now, and the limits that they announce: reports of workers, added up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RateMeter


@dataclass(frozen=True, slots=True)
class ProviderRate:
    """One provider and API key. Limits are per second, None if none is announced.

    `rate_limited` counts refused requests as long as the provider is asked. `resume_at` is a time to come.
    """

    pools: tuple[str, ...]
    requests_per_second: float
    waiting: int
    rate_limited: int
    allowed_requests_per_second: float | None
    allowed_tokens_per_second: float | None
    resume_at: datetime | None


def provider_rates(
    tracker: RateLimitTracker, pool_of: Mapping[str, str], now: float, clock_time: datetime
) -> list[ProviderRate]:
    """Rates of providers that are asked now, by their pools. `pool_of` has the pools of live workers."""
    rates = [_rate(meter, pool_of, now, clock_time) for meter in tracker.meters.values()]
    return sorted((rate for rate in rates if rate.pools), key=lambda rate: rate.pools)


def _rate(meter: RateMeter, pool_of: Mapping[str, str], now: float, clock_time: datetime) -> ProviderRate:
    measured = meter.measure(now)
    resume_at = measured.resume_at
    return ProviderRate(
        pools=tuple(sorted({pool_of[name] for name in meter.demands(now) if name in pool_of})),
        requests_per_second=max(measured.accepted_per_second, 0.0),
        waiting=measured.waiting,
        rate_limited=measured.rate_limited,
        allowed_requests_per_second=measured.allowed_requests_per_second,
        allowed_tokens_per_second=measured.allowed_tokens_per_second,
        resume_at=resume_at if resume_at and resume_at > clock_time else None,
    )
