"""Limits in Postgres: those that an operator changed, over those of the settings."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import asyncpg

from proctor.values.priority import Priority
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.limits.queue_limits import (
    LIMIT_NAMES,
    LimitChanges,
    QueueLimits,
    RequestAllowance,
    allowance,
    changed_text,
)

_MINUTE = timedelta(minutes=1)
# Priorities have a table of their own.
_IN_THE_ROW = tuple(name for name in LIMIT_NAMES if name != "highest_priorities")


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
            values = {name: getattr(changes, name) for name in _IN_THE_ROW}
            await transaction.execute("change_limits", reset=list(changes.reset), **values)
            if changes.highest_priorities or "highest_priorities" in changes.reset:
                await transaction.execute("delete_user_priorities")
                users = list(changes.highest_priorities)
                highest = [priority.number for priority in changes.highest_priorities.values()]
                await transaction.execute("add_user_priorities", usernames=users, highest_priorities=highest)
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
        [row] = await self._session.fetch("count_request", username=user, minute=minute, is_read=is_read)
        changed: int = row["changed_limit"] or self._settings.max_requests_per_minute
        return allowance(max_reads if is_read else changed, row["requests"], user, resets_in)

    async def delete_request_counts(self, before: datetime) -> None:
        await self._session.execute("delete_request_counts", before=before - _MINUTE)

    async def _limits(self, transaction: PostgresTransaction) -> QueueLimits:
        return _limits_from_row(await transaction.fetchrow("read_limits"), self._settings)


def _limits_from_row(row: asyncpg.Record | None, settings: QueueLimits) -> QueueLimits:
    if row is None:
        return settings

    changed = {name: row[name] for name in _IN_THE_ROW if row[name] is not None}
    priorities = map(Priority.of_number, row["highest_priorities"])
    highest = dict(zip(row["usernames"], priorities, strict=True))
    return replace(settings, **changed, highest_priorities=highest or settings.highest_priorities)
