"""Saved mappings in Postgres."""

from dataclasses import asdict
from typing import Self

import asyncpg

from proctor.values.uploads.column_mapping import ColumnMapping
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.uploads.mappings.saved_mapping import MAX_LISTED, MappingNotFound, SavedMapping


class PostgresMappings:
    """Each change is stored with its author."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    def reading(self, session: PostgresSession) -> Self:
        return type(self)(session)

    async def find(self, name: str, project_id: int) -> SavedMapping | None:
        row = await self._session.fetchrow("find_mapping", name=name, project_id=project_id)
        return _from_row(row) if row else None

    async def get(self, name: str, project_id: int) -> SavedMapping:
        """Raises `MappingNotFound`."""
        found = await self.find(name, project_id)
        if found is None:
            raise MappingNotFound(name=name)
        return found

    async def list(self, user: str, project_id: int | None) -> list[SavedMapping]:
        """`user`: "" for those of every user; `project_id`: None for all that may be read."""
        rows = await self._session.fetch(
            "list_mappings", username=user, project_id=project_id, limit=MAX_LISTED
        )
        return [_from_row(row) for row in rows]

    async def save(self, saved: SavedMapping, author: Author) -> bool:
        """False where another user has the name."""

        async def save(transaction: PostgresTransaction) -> bool:
            is_saved = await transaction.fetchval(
                "save_mapping",
                project_id=saved.project_id,
                name=saved.name,
                username=saved.user,
                saved_at=saved.saved_at,
                **asdict(saved.mapping),
            )
            if is_saved:
                await record_change(transaction, _change(author, Action.SAVE, saved.name, saved.project_id))
            return bool(is_saved)

        return await self._session.run(save)

    async def delete(self, name: str, project_id: int, author: Author) -> None:
        """Raises `MappingNotFound`."""

        async def delete(transaction: PostgresTransaction) -> None:
            if not await transaction.fetchval("delete_mapping", name=name, project_id=project_id):
                raise MappingNotFound(name=name)
            await record_change(transaction, _change(author, Action.DELETE, name, project_id))

        await self._session.run(delete)


def _change(author: Author, action: Action, name: str, project_id: int) -> Change:
    return Change(author, action, ObjectKind.MAPPING, name, name, project_id)


def _from_row(row: asyncpg.Record) -> SavedMapping:
    mapping = ColumnMapping(row["prompt"], row["target"], row["id"])
    return SavedMapping(row["name"], mapping, row["username"], row["project_id"], row["saved_at"])
