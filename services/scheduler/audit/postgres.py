"""The audit in Postgres. A record of a change is written by the transaction that makes the change."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import asyncpg

from services.common.grpc.caller import current_caller
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import (
    Action,
    AuditFilter,
    AuditPage,
    AuditRecord,
    Author,
    Change,
    ChangePage,
    ObjectKind,
    Outcome,
)


async def record_change(transaction: PostgresTransaction, change: Change) -> None:
    """The key and the address are those of the call that is served, if any."""
    author, caller = change.author, current_caller()
    await transaction.execute(
        "add_audit_record",
        recorded_at=author.at,
        username=author.user,
        key_id=caller.key_id,
        address=caller.address,
        action=change.action,
        kind=change.kind,
        object_id=change.object_id,
        detail=change.detail,
        outcome=Outcome.DONE,
        times=1,
        is_listed=change.action.is_listed,
        project_id=change.project_id,
    )


class PostgresAudit:
    """Adds records of what the gateway sees, lists records and changes, and deletes old ones."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def add(self, records: Sequence[AuditRecord]) -> None:
        async def add(transaction: PostgresTransaction) -> None:
            for record in records:
                values = asdict(record)
                user = values.pop("user")
                await transaction.execute(
                    "add_audit_record", username=user, is_listed=False, project_id=0, **values
                )

        await self._session.run(add)

    async def records(self, wanted: AuditFilter, size: int, before: int | None) -> AuditPage:
        # One more than is shown: then there is a next page.
        rows = await self._session.fetch(
            "list_audit_records",
            username=wanted.user,
            action=wanted.action,
            object_id=wanted.object_id,
            outcome=wanted.outcome,
            since=wanted.since,
            before_record_id=before,
            limit=size + 1,
        )
        return AuditPage([_record_from_row(row) for row in rows[:size]], _last(rows, size))

    async def page(
        self, size: int, before: int | None, *, object_id: str | None = None, kind: ObjectKind | None = None
    ) -> ChangePage:
        if object_id is None and kind is None:
            rows = await self._session.fetch("list_changes", before_record_id=before, limit=size + 1)
        else:
            rows = await self._session.fetch(
                "list_changes_of",
                before_record_id=before,
                limit=size + 1,
                object_id=object_id or "",
                kind=kind,
            )
        return ChangePage([_change_from_row(row) for row in rows[:size]], _last(rows, size))

    async def delete_oldest(self, outcome: Outcome, before: datetime, kept: int, limit: int) -> int:
        async def delete(transaction: PostgresTransaction) -> int:
            await transaction.execute("allow_audit_deletion")
            deleted = await transaction.fetch(
                "delete_oldest_audit_records",
                outcome=outcome,
                recorded_before=before,
                kept=kept,
                limit=limit,
            )
            return len(deleted)

        return await self._session.run(delete)


def _last(rows: Sequence[asyncpg.Record], size: int) -> int | None:
    return rows[size - 1]["record_id"] if len(rows) > size else None


def _change_from_row(row: asyncpg.Record) -> Change:
    author = Author(row["username"], row["recorded_at"])
    return Change(author, Action(row["action"]), ObjectKind(row["kind"]), row["object_id"], row["detail"])


def _record_from_row(row: asyncpg.Record) -> AuditRecord:
    values = dict(row)
    del values["record_id"]
    values["outcome"] = Outcome(values["outcome"])
    return AuditRecord(user=values.pop("username"), **values)
