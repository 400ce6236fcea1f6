"""Storage of users and projects, summed over their rows in Postgres: no count apart can be wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.uploads.quotas.storage_use import (
    ProjectQuota,
    StorageKind,
    StorageQuota,
    StorageUse,
    UserStorage,
)

_QUERY = "read_storage"
_PROJECT_QUERY = "sum_project_storage"
_Reader = PostgresSession | PostgresTransaction


@dataclass(frozen=True, slots=True)
class StorageQueries:
    """Queries that sum up what topics above this one store, in rows of those of this topic."""

    of_user: Sequence[str] = ()
    of_project: Sequence[str] = ()


class PostgresStorage:
    def __init__(
        self, session: PostgresSession, limits: PostgresLimits, queries: StorageQueries = StorageQueries()
    ) -> None:
        self._session = session
        self._limits = limits
        self._queries = queries

    def reading(self, session: PostgresSession) -> "PostgresStorage":
        """The same through another session, such as that of lists."""
        return PostgresStorage(session, self._limits.reading(session), self._queries)

    async def of(self, user: str) -> UserStorage:
        return await self._storage(self._session, user, await self._limits.limits())

    async def quota(self, user: str, project_id: int) -> StorageQuota:
        limits = await self._limits.limits()
        stored = await self._storage(self._session, user, limits)
        return replace(stored.quota, project=await self._project(self._session, project_id, limits))

    async def check_added(
        self, transaction: PostgresTransaction, user: str, project_id: int, added: StorageUse
    ) -> None:
        """Raises `StorageQuotaExceeded` if what the transaction has added does not fit.

        No other transaction passes this check for the user or the project before this one ends: of two
        uploads that fit only one by one, the second is refused. A transaction that is repeated counts what it
        added once.
        """
        (await self._locked(transaction, user, project_id)).before(added).check(added)

    async def check_room(
        self, transaction: PostgresTransaction, user: str, project_id: int, added: StorageUse
    ) -> None:
        """Raises `StorageQuotaExceeded` if `added` would not fit."""
        (await self._locked(transaction, user, project_id)).check(added)

    async def check_suite(
        self, transaction: PostgresTransaction, user: str, project_id: int, size_bytes: int
    ) -> None:
        """`check_added` for a version of a suite."""
        await self.check_added(transaction, user, project_id, StorageUse(bytes=size_bytes, files=1))

    async def _locked(self, transaction: PostgresTransaction, user: str, project_id: int) -> StorageQuota:
        # In this order everywhere, so that none waits for one that waits for it.
        await transaction.execute("lock_storage", username=user)
        limits = await self._limits.locked_limits(transaction)
        if project_id and limits.max_stored_bytes_per_project:
            await transaction.execute("lock_project_storage", project_id=project_id)
        stored = await self._storage(transaction, user, limits)
        return replace(stored.quota, project=await self._project(transaction, project_id, limits))

    async def _storage(self, reader: _Reader, user: str, limits: QueueLimits) -> UserStorage:
        queries = (_QUERY, *self._queries.of_user)
        return _storage(
            user, [row for query in queries for row in await reader.fetch(query, username=user)], limits
        )

    async def _project(self, reader: _Reader, project_id: int, limits: QueueLimits) -> ProjectQuota | None:
        limit = limits.max_stored_bytes_per_project
        if not project_id or not limit:
            return None
        queries = (_PROJECT_QUERY, *self._queries.of_project)
        used = sum(
            [row["bytes"] for query in queries for row in await reader.fetch(query, project_id=project_id)]
        )
        return ProjectQuota(project_id, used, limit)


def _storage(user: str, rows: Iterable[asyncpg.Record], limits: QueueLimits) -> UserStorage:
    shares = {
        StorageKind(row["kind"]): StorageUse(row["bytes"], row["files"], row["rows"])
        for row in rows
        if row["files"]
    }
    limit = StorageUse(
        limits.max_stored_bytes_per_user, limits.max_stored_files_per_user, limits.max_stored_rows_per_user
    )
    return UserStorage(user, shares, limit)
