"""Queries by name on the pool: repeated while Postgres restarts, refused when it stays away."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import asyncpg

from services.common.errors import DependencyUnavailable
from services.common.postgres import TRANSIENT_POSTGRES, load_queries, retrying
from services.common.structured_logs import get_logger

T = TypeVar("T")
log = get_logger()

SCHEMA = "results"
ROOT = Path(__file__).parent
MIGRATIONS = ROOT / "migrations"
# Each topic has a file of its own; names are unique over all of them.
QUERIES = load_queries(*sorted(ROOT.glob("*/queries.sql")))

Connection = asyncpg.pool.PoolConnectionProxy


class PostgresSession:
    """The pool with this service's queries."""

    def __init__(
        self, pool: asyncpg.Pool, *, patience_seconds: float = 10.0, queries: Mapping[str, str] = QUERIES
    ) -> None:
        self._pool = pool
        self._patience_seconds = patience_seconds
        self.queries = queries

    async def fetch(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        """The rows of a query."""
        return await self.repeat(lambda: self._pool.fetch(self.queries[name], *arguments))

    async def fetchrow(self, name: str, *arguments: object) -> asyncpg.Record | None:
        """The first row of a query."""
        return await self.repeat(lambda: self._pool.fetchrow(self.queries[name], *arguments))

    async def repeat(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Runs an operation that can be repeated; a restart of Postgres in its middle goes unnoticed."""

        async def again() -> T:
            return await operation()

        try:
            return await operation()
        except TRANSIENT_POSTGRES as error:
            log.info("query repeated", error=repr(error))
        try:
            return await retrying(again, patience_seconds=self._patience_seconds)
        except TRANSIENT_POSTGRES as error:
            raise DependencyUnavailable(dependency="Postgres") from error

    def transaction(self) -> AbstractAsyncContextManager["PostgresTransaction"]:
        """Several queries that happen together or not at all; to be used within `repeat`."""
        return self._transaction()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator["PostgresTransaction"]:
        async with self._pool.acquire() as connection, connection.transaction():
            yield PostgresTransaction(connection, self.queries)


class PostgresTransaction:
    """A transaction with this service's queries."""

    def __init__(self, connection: Connection, queries: Mapping[str, str]) -> None:
        self.connection = connection
        self._queries = queries

    async def fetch(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        """The rows of a query."""
        rows: list[asyncpg.Record] = await self.connection.fetch(self._queries[name], *arguments)
        return rows

    async def fetchrow(self, name: str, *arguments: object) -> asyncpg.Record | None:
        """The first row of a query."""
        row: asyncpg.Record | None = await self.connection.fetchrow(self._queries[name], *arguments)
        return row

    async def execute(self, name: str, *arguments: object) -> None:
        """A query without rows."""
        await self.connection.execute(self._queries[name], *arguments)


def storable(text: str) -> str:
    """Postgres's text has no NUL; a model may well say one."""
    return text.replace("\x00", "\ufffd") if "\x00" in text else text
