"""Suites of users in Postgres."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import asyncpg

from services.common.postgres import load_queries
from services.scheduler.postgres_sessions import Connection, Sessions
from services.scheduler.suites.errors import SuiteInUse
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.stored_suite import AddedSuite, StoredSuite

Queries = load_queries(Path(__file__).with_name("queries.sql"))


class PostgresUserSuites:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def add(self, suite: str, document: SuiteDocument, user: str, now: datetime) -> AddedSuite:
        digest = document.digest

        async def add(connection: Connection) -> AddedSuite:
            await connection.execute(Queries["lock_suite"], suite)
            known = await connection.fetchval(Queries["find_suite_content"], suite, digest)
            if known is not None:
                return AddedSuite(StoredSuite(suite, known, digest), is_known=True)
            version = await connection.fetchval(
                Queries["add_suite_version"], suite, digest, document.text, document.file_name, user, now
            )
            paths, contents = list(document.files), list(document.files.values())
            await connection.execute(Queries["add_suite_files"], suite, version, paths, contents)
            return AddedSuite(StoredSuite(suite, version, digest))

        return await self._sessions.run(add)

    async def find(self, suite: str, version: int | None) -> StoredSuite | None:
        row = await self._sessions.fetchrow(Queries["find_suite"], suite, version)
        return StoredSuite(**row) if row else None

    async def latest(self) -> Sequence[StoredSuite]:
        rows = await self._sessions.fetch(Queries["latest_suites"])
        return [StoredSuite(**row) for row in rows]

    async def document(self, stored: StoredSuite) -> SuiteDocument | None:
        async def read(connection: Connection) -> SuiteDocument | None:
            key = (stored.suite, stored.version)
            row = await connection.fetchrow(Queries["get_suite_document"], *key)
            files = await connection.fetch(Queries["get_suite_files"], *key)
            contents = {file["path"]: file["content"] for file in files}
            return SuiteDocument(row["document"], row["file_name"], contents) if row else None

        return await self._sessions.run(read)

    async def delete(self, suite: str, version: int) -> bool:
        async def delete(connection: Connection) -> bool:
            removed = await connection.fetchval(Queries["delete_suite_version"], suite, version)
            return removed is not None

        try:
            return await self._sessions.run(delete)
        except asyncpg.ForeignKeyViolationError as error:
            raise SuiteInUse(suite=suite, version=version) from error
