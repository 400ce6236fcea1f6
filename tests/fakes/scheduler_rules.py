"""Limits, rules and timings of the scheduler as the tests have them; each names what matters to it."""

from dataclasses import replace
from datetime import timedelta

from services.scheduler.dispatch.dispatch_run import DriverTimings
from services.scheduler.dispatch.dispatch_shards import CreditRule
from services.scheduler.limits.queue_limits import QueueLimits

TIMINGS = DriverTimings(quiet_seconds=3.0)
CREDIT = CreditRule(min_shards=4, max_shards=256, seconds_ahead=1.0)
_LIMITS = QueueLimits(
    max_running_runs=3,
    max_pending_runs_per_user=10,
    max_requests_per_minute=100,
    run_time_limit=timedelta(hours=3),
    min_run_time=timedelta(seconds=60),
    highest_priorities={},
    max_reads_per_minute=3000,
    max_stored_bytes_per_user=100_000_000_000,
    max_stored_files_per_user=10_000,
    max_stored_rows_per_user=200_000_000,
    max_stored_bytes_per_project=0,
)


def queue_limits(**changes: object) -> QueueLimits:
    return replace(_LIMITS, **changes)  # type: ignore[arg-type]  # names are checked by replace


def credit_rule(**changes: float) -> CreditRule:
    return replace(CREDIT, **changes)  # type: ignore[arg-type]  # names are checked by replace
