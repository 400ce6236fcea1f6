"""Changes in Postgres: written by the transaction that makes them."""

from datetime import datetime

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.changes.user_change import Action, Author, Change, ChangePage, ObjectKind


async def record_change(transaction: PostgresTransaction, change: Change) -> None:
    author = change.author
    await transaction.execute(
        "add_change",
        changed_at=author.at,
        username=author.user,
        action=change.action,
        kind=change.kind,
        object_id=change.object_id,
        detail=change.detail,
    )


class PostgresChanges:
    """Lists changes, and deletes old ones."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def page(
        self, size: int, before: int | None, *, object_id: str | None = None, kind: ObjectKind | None = None
    ) -> ChangePage:
        # One more than is shown: then there is a next page.
        if object_id is None and kind is None:
            rows = await self._session.fetch("list_changes", before_change_id=before, limit=size + 1)
        else:
            rows = await self._session.fetch(
                "list_changes_of",
                before_change_id=before,
                limit=size + 1,
                object_id=object_id or "",
                kind=kind,
            )
        shown = rows[:size]
        last = shown[-1]["change_id"] if len(rows) > size else None
        return ChangePage([_change_from_row(row) for row in shown], last)

    async def delete_oldest(self, before: datetime, kept: int, limit: int) -> int:
        return len(
            await self._session.fetch("delete_oldest_changes", changed_before=before, kept=kept, limit=limit)
        )


def _change_from_row(row: asyncpg.Record) -> Change:
    author = Author(row["username"], row["changed_at"])
    return Change(author, Action(row["action"]), ObjectKind(row["kind"]), row["object_id"], row["detail"])
