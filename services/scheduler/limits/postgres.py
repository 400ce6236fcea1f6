"""Limits in Postgres: those that an operator changed, over those of the settings."""

from datetime import UTC, datetime, timedelta

import asyncpg

from proctor.values.priority import Priority
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.changes.postgres import record_change
from services.scheduler.changes.user_change import Action, Author, Change, ObjectKind
from services.scheduler.limits.queue_limits import (
    LimitChanges,
    LimitName,
    QueueLimits,
    RequestAllowance,
    allowance,
    changed_text,
)

_MINUTE = timedelta(minutes=1)


class PostgresLimits:
    """`settings` are the limits that hold until they are changed."""

    def __init__(self, session: PostgresSession, settings: QueueLimits) -> None:
        self._session = session
        self._settings = settings

    def reading(self, session: PostgresSession) -> "PostgresLimits":
        """The same through another session, such as that of lists."""
        return PostgresLimits(session=session, settings=self._settings)

    async def limits(self) -> QueueLimits:
        return _limits_from_row(await self._session.fetchrow("read_limits"), self._settings)

    async def locked_limits(self, transaction: PostgresTransaction) -> QueueLimits:
        """The limits, which do not change before this transaction ends."""
        await transaction.execute("lock_limits")
        return await self._limits(transaction)

    async def change(self, changes: LimitChanges, author: Author) -> QueueLimits:
        async def set_limits(transaction: PostgresTransaction) -> QueueLimits:
            await transaction.execute("change_limits", *_changed_values(changes))
            if changes.priorities or LimitName.PRIORITIES in changes.reset:
                await transaction.execute("delete_user_priorities")
                users = list(changes.priorities)
                highest = [priority.number for priority in changes.priorities.values()]
                await transaction.execute("add_user_priorities", users, highest)
            change = Change(author, Action.SET, ObjectKind.LIMITS, "", changed_text(changes))
            await record_change(transaction, change)
            return await self._limits(transaction)

        return await self._session.run(set_limits)

    async def count_request(self, user: str, now: datetime, *, is_read: bool = False) -> RequestAllowance:
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        resets_in = minute + _MINUTE - now
        max_reads = self._settings.max_reads_per_minute
        if is_read and not max_reads:
            return allowance(0, 0, user, resets_in)
        [row] = await self._session.fetch("count_request", user, minute, is_read)
        changed: int = row["changed_limit"] or self._settings.max_requests_per_minute
        return allowance(max_reads if is_read else changed, row["requests"], user, resets_in)

    async def forget_requests(self, before: datetime) -> None:
        await self._session.execute("forget_requests", before - _MINUTE)

    async def _limits(self, transaction: PostgresTransaction) -> QueueLimits:
        return _limits_from_row(await transaction.fetchrow("read_limits"), self._settings)


def _limits_from_row(row: asyncpg.Record | None, settings: QueueLimits) -> QueueLimits:
    if row is None:
        return settings

    def seconds(name: str, unchanged: timedelta) -> timedelta:
        return unchanged if row[name] is None else timedelta(seconds=row[name])

    changed_priorities = zip(
        row["usernames"], map(Priority.of_number, row["highest_priorities"]), strict=True
    )
    return QueueLimits(
        max_running=row["max_running_runs"] or settings.max_running,
        max_pending_per_user=row["max_pending_runs_per_user"] or settings.max_pending_per_user,
        max_requests_per_minute=row["max_requests_per_minute"] or settings.max_requests_per_minute,
        run_time_limit=seconds("run_time_limit_seconds", settings.run_time_limit),
        min_run_time=seconds("min_run_time_seconds", settings.min_run_time),
        priorities=dict(changed_priorities) or settings.priorities,
        max_reads_per_minute=settings.max_reads_per_minute,
        max_stored_bytes_per_user=row["max_stored_bytes_per_user"] or settings.max_stored_bytes_per_user,
        max_stored_files_per_user=row["max_stored_files_per_user"] or settings.max_stored_files_per_user,
        max_stored_rows_per_user=row["max_stored_rows_per_user"] or settings.max_stored_rows_per_user,
        # 0 is no limit, whatever the settings say.
        max_stored_bytes_per_project=(
            settings.max_stored_bytes_per_project
            if row["max_stored_bytes_per_project"] is None
            else row["max_stored_bytes_per_project"]
        ),
    )


def _changed_values(changes: LimitChanges) -> tuple[int | float | list[str] | None, ...]:
    return (
        changes.max_running,
        changes.max_pending_per_user,
        changes.max_requests_per_minute,
        changes.run_time_limit.total_seconds() if changes.run_time_limit is not None else None,
        changes.min_run_time.total_seconds() if changes.min_run_time is not None else None,
        [name.value for name in changes.reset],
        changes.max_stored_bytes_per_user,
        changes.max_stored_files_per_user,
        changes.max_stored_rows_per_user,
        changes.max_stored_bytes_per_project,
    )
