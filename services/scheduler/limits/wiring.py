"""The limits of the settings, over which those in Postgres lie."""

from datetime import timedelta

from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings


def make_limits(settings: SchedulerSettings, connections: Connections) -> PostgresLimits:
    limits = QueueLimits(
        max_running_runs=settings.max_running_runs,
        max_pending_runs_per_user=settings.max_pending_runs_per_user,
        max_requests_per_minute=settings.max_requests_per_minute,
        max_reads_per_minute=settings.max_reads_per_minute,
        run_time_limit=timedelta(seconds=settings.run_time_limit_seconds),
        min_run_time=timedelta(seconds=settings.min_run_time_seconds),
        highest_priorities=settings.highest_priorities,
        max_stored_bytes_per_user=settings.max_stored_bytes_per_user,
        max_stored_files_per_user=settings.max_stored_files_per_user,
        max_stored_rows_per_user=settings.max_stored_rows_per_user,
        max_stored_bytes_per_project=settings.max_stored_bytes_per_project,
    )
    return PostgresLimits(session=connections.postgres, settings=limits)
