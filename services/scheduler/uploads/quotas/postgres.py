"""Storage of users, summed over their rows in Postgres: without a count apart, none can be wrong."""

from collections.abc import Iterable, Sequence

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.uploads.quotas.storage_use import StorageKind, StorageQuota, StorageUse, UserStorage

_QUERY = "read_storage"


class PostgresStorage:
    """`queries` sum up what topics above this one store; their rows are those of `read_storage`."""

    def __init__(self, session: PostgresSession, limits: PostgresLimits, queries: Sequence[str] = ()) -> None:
        self._session = session
        self._limits = limits
        self._queries = queries

    def reading(self, session: PostgresSession) -> "PostgresStorage":
        """The same through another session, such as that of lists."""
        return PostgresStorage(session, self._limits.reading(session), self._queries)

    async def of(self, user: str) -> UserStorage:
        queries = (_QUERY, *self._queries)
        rows = [row for query in queries for row in await self._session.fetch(query, user)]
        return _storage(user, rows, await self._limits.limits())

    async def check_added(self, transaction: PostgresTransaction, user: str, added: StorageUse) -> None:
        """Raises `StorageQuotaExceeded` if what the transaction has added does not fit.

        No other transaction passes this check for the user before this one ends: of two uploads that fit only
        one by one, the second is refused. A transaction that is repeated counts what it added once.
        """
        stored = (await self._locked(transaction, user)).quota
        StorageQuota(user, stored.used - added, stored.limit).check(added)

    async def check_room(self, transaction: PostgresTransaction, user: str, added: StorageUse) -> None:
        """Raises `StorageQuotaExceeded` if `added` would not fit."""
        (await self._locked(transaction, user)).quota.check(added)

    async def check_suite(self, transaction: PostgresTransaction, user: str, size_bytes: int) -> None:
        """`check_added` for a version of a suite."""
        await self.check_added(transaction, user, StorageUse(bytes=size_bytes, files=1))

    async def _locked(self, transaction: PostgresTransaction, user: str) -> UserStorage:
        await transaction.execute("lock_storage", user)
        limits = await self._limits.locked_limits(transaction)
        queries = (_QUERY, *self._queries)
        rows = [row for query in queries for row in await transaction.fetch(query, user)]
        return _storage(user, rows, limits)


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
