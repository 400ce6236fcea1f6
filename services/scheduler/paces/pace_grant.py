"""What is granted under one pace, as of one moment."""

from datetime import datetime, timedelta

from services.scheduler.paces.pace import RateQuota
from services.scheduler.paces.pace_meter import Measured, PaceMeter
from services.scheduler.paces.rate_limit import BELOW, RateLimit
from services.scheduler.paces.shares import share_out

# A shorter wait is over by the time the other workers hear of it.
_WORTH_TELLING = timedelta(seconds=1)


def settle(meter: PaceMeter, limit: RateLimit, now: float, clock_time: datetime) -> RateQuota:
    """`now` is of the clock that the reports were recorded by, `clock_time` the time of day."""
    measured = meter.measure(now)
    tokens = measured.allowed_tokens
    return RateQuota(
        requests_per_second=limit.step(measured, now),
        tokens_per_second=None if tokens is None else BELOW * tokens,
        shares=share_out(meter.demands(now)),
        resume_at=_worth_telling(measured, clock_time),
    )


def _worth_telling(measured: Measured, clock_time: datetime) -> datetime | None:
    when = measured.resume_at
    return when if when is not None and when > clock_time + _WORTH_TELLING else None
