"""Limits in Postgres: those that an operator changed, over those of the settings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

from services.common.postgres import load_queries
from services.scheduler.postgres_sessions import Connection, Sessions
from services.scheduler.runs.limits.errors import TooManyRequests
from services.scheduler.runs.limits.queue_limits import LimitChanges, LimitName, QueueLimits
from services.scheduler.runs.orders.run_order import Priority

QUERIES = load_queries(Path(__file__).with_name("queries.sql"))
_MINUTE = timedelta(minutes=1)


class PostgresLimits:
    """`settings` are the limits that hold until they are changed."""

    def __init__(self, sessions: Sessions, settings: QueueLimits) -> None:
        self._sessions = sessions
        self._settings = settings

    async def limits(self) -> QueueLimits:
        return await self._sessions.read(self._limits)

    async def locked_limits(self, connection: Connection) -> QueueLimits:
        """The limits, which do not change before this transaction ends."""
        await connection.execute(QUERIES["lock_limits"])
        return await self._limits(connection)

    async def change(self, changes: LimitChanges) -> QueueLimits:
        async def change(connection: Connection) -> QueueLimits:
            await connection.execute(QUERIES["change_limits"], *_changed_values(changes))
            if changes.priorities or LimitName.PRIORITIES in changes.reset:
                await connection.execute(QUERIES["delete_user_priorities"])
                users, highest = list(changes.priorities), list(changes.priorities.values())
                await connection.execute(QUERIES["add_user_priorities"], users, highest)
            return await self._limits(connection)

        return await self._sessions.run(change)

    async def count_request(self, user: str, now: datetime) -> int:
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        [row] = await self._sessions.fetch(QUERIES["count_request"], user, minute)
        limit: int = row["changed_limit"] or self._settings.max_requests_per_minute
        left: int = limit - row["requests"]
        if left < 0:
            seconds = int((minute + _MINUTE - now).total_seconds()) + 1
            raise TooManyRequests(user=user, limit=limit, retry_after_seconds=seconds)
        return left

    async def forget_requests(self, before: datetime) -> None:
        await self._sessions.execute(QUERIES["delete_old_request_counts"], before - _MINUTE)

    async def _limits(self, connection: Connection) -> QueueLimits:
        [row] = await connection.fetch(QUERIES["get_limits"])
        return _limits_from_row(row, self._settings)


def _limits_from_row(row: asyncpg.Record, settings: QueueLimits) -> QueueLimits:
    def seconds(name: str, unchanged: timedelta) -> timedelta:
        return unchanged if row[name] is None else timedelta(seconds=row[name])

    changed_priorities = zip(row["usernames"], map(Priority, row["highest_priorities"]), strict=True)
    return QueueLimits(
        max_running=row["max_running_runs"] or settings.max_running,
        max_pending_per_user=row["max_pending_runs_per_user"] or settings.max_pending_per_user,
        max_requests_per_minute=row["max_requests_per_minute"] or settings.max_requests_per_minute,
        run_time_limit=seconds("run_time_limit_seconds", settings.run_time_limit),
        min_run_time=seconds("min_run_time_seconds", settings.min_run_time),
        priorities=dict(changed_priorities) or settings.priorities,
    )


def _changed_values(changes: LimitChanges) -> tuple[int | float | list[str] | None, ...]:
    return (
        changes.max_running,
        changes.max_pending_per_user,
        changes.max_requests_per_minute,
        changes.run_time_limit.total_seconds() if changes.run_time_limit is not None else None,
        changes.min_run_time.total_seconds() if changes.min_run_time is not None else None,
        [name.value for name in changes.reset],
    )
