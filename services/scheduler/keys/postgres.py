"""Keys and ended sessions in Postgres. A version is taken under a lock, so versions follow the commits."""

from datetime import datetime
from typing import Any

import asyncpg

from proctor.values.names.user import OTHER_USERS, Role
from services.common.postgres import PostgresSession, PostgresTransaction
from services.common.sql.row_scope import seeing_all
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.keys.api_key import (
    AccessChanges,
    ApiKey,
    EndedSession,
    KeyPage,
    KnownKey,
    Replaced,
)
from services.scheduler.keys.errors import KeyEnded, TooManyKeys
from services.scheduler.projects.project import KnownMember, KnownProject

# Every replica of the gateway holds them: some 3 MB.
MAX_KEYS = 10_000


class PostgresKeys:
    """Keys and the ends of sessions."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def add(
        self, key: ApiKey, code: bytes, author: Author, *, replaced: Replaced | None = None
    ) -> None:
        async def store(transaction: PostgresTransaction) -> None:
            version = await transaction.fetchval("take_access_version")
            is_new = await transaction.fetchval(
                "add_key",
                key_id=key.key_id,
                username=key.user,
                role=key.role,
                note=key.note,
                code=code,
                created_by=key.created_by,
                created_at=key.created_at,
                expires_at=key.expires_at,
                version=version,
                project_id=key.project_id,
            )
            if not is_new:
                # Another one of the same request, or this one before its answer was lost.
                return
            if await transaction.fetchval("count_keys", now=author.at) > MAX_KEYS:
                raise TooManyKeys(limit=MAX_KEYS)
            action, changed = Action.CREATE, key.key_id
            if replaced:
                await _shorten(transaction, replaced)
                action, changed = Action.ROTATE, replaced.key_id
            detail = f"{key.user}: {key.role}" + (f", now {key.key_id}" if replaced else "")
            # Of a key that is bound, the members of its project hear.
            change = Change(author, action, ObjectKind.KEY, changed, detail, key.project_id)
            await record_change(transaction, change)

        await self._session.run(store)

    async def find(self, key_id: str) -> ApiKey | None:
        row = await self._session.fetchrow("find_key", key_id=key_id)
        return None if row is None else _key_from_row(row)

    async def is_member(self, project_id: int, user: str) -> bool:
        found = await self._session.fetchval(
            "find_membership", project_id=project_id, usernames=[user, OTHER_USERS]
        )
        return bool(found)

    async def page(self, size: int, before: int | None, user: str) -> KeyPage:
        # One more than is shown: then there is a next page.
        rows = await self._session.fetch("list_keys", before_key_number=before, username=user, limit=size + 1)
        shown = rows[:size]
        last = shown[-1]["key_number"] if len(rows) > size else None
        return KeyPage([_key_from_row(row) for row in shown], last)

    async def revoke(self, key_id: str, author: Author) -> None:
        async def end(transaction: PostgresTransaction) -> None:
            version = await transaction.fetchval("take_access_version")
            row = await transaction.fetchrow(
                "revoke_key", key_id=key_id, revoked_at=author.at, version=version
            )
            if row is not None:
                detail = f"{row['username']}: {row['role']}"
                change = Change(author, Action.REVOKE, ObjectKind.KEY, key_id, detail, row["key_project"])
                await record_change(transaction, change)

        await self._session.run(end)

    async def end_session(self, session_id: str, ends_at: datetime, author: Author) -> None:
        async def end(transaction: PostgresTransaction) -> None:
            version = await transaction.fetchval("take_access_version")
            await transaction.execute(
                "add_ended_session", session_id=session_id, expires_at=ends_at, version=version
            )
            await record_change(transaction, Change(author, Action.SIGN_OUT, ObjectKind.SESSION, session_id))

        await self._session.run(end)

    async def changes_behind(self, version: int, now: datetime, limit: int) -> AccessChanges:
        current: int = await self._session.fetchval("read_access_version")
        if version >= current:
            # Postgres may have been restored from a backup.
            return AccessChanges(version=current, is_unknown_version=version > current)
        # Names of projects: a gateway shows them to their members alone.
        with seeing_all():
            rows = await self._session.fetch(
                "list_access_changes", behind_version=version, now=now, limit=limit
            )
        has_more = len(rows) == limit
        return AccessChanges(
            # Without more, rows up to the version that was read before them are among them.
            version=rows[-1]["version"] if has_more else max(current, *(row["version"] for row in rows), 0),
            keys=[_known_from_row(row) for row in rows if row["key_id"]],
            sessions=[EndedSession(row["session_id"], row["ends_in"]) for row in rows if row["session_id"]],
            members=[_member_from_row(row) for row in rows if row["username"] and not row["key_id"]],
            projects=[
                KnownProject(row["project_id"], row["project_name"]) for row in rows if row["project_name"]
            ],
            has_more=has_more,
        )

    async def note_uses(self, key_ids: list[str], now: datetime) -> None:
        await self._session.execute("note_key_uses", key_ids=key_ids, used_at=now)

    async def delete_old(self, before: datetime, now: datetime) -> None:
        await self._session.execute("delete_old_keys", ended_before=before)
        await self._session.execute("delete_old_sessions", now=now)


async def _shorten(transaction: PostgresTransaction, replaced: Replaced) -> None:
    """Raises `KeyEnded` where somebody has revoked the key since it was looked up."""
    version = await transaction.fetchval("take_access_version")
    is_shortened = await transaction.fetchval(
        "shorten_key", key_id=replaced.key_id, expires_at=replaced.ends_at, version=version
    )
    if not is_shortened:
        raise KeyEnded(key_id=replaced.key_id)


def _key_from_row(row: asyncpg.Record) -> ApiKey:
    names = ("key_id", "note", "created_by", "created_at", "expires_at", "last_used_at", "revoked_at")
    values: dict[str, Any] = {name: row[name] for name in (*names, "project_id")}
    return ApiKey(user=row["username"], role=Role(row["role"]), **values)


def _known_from_row(row: asyncpg.Record) -> KnownKey:
    names = ("code", "ends_in", "project_id")
    return KnownKey(row["key_id"], row["username"], Role(row["role"]), *(row[name] for name in names))


def _member_from_row(row: asyncpg.Record) -> KnownMember:
    return KnownMember(row["project_id"], row["username"], Role(row["role"]) if row["role"] else None)
