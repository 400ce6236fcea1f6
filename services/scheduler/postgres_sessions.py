"""How the scheduler's stores talk to Postgres: each operation is repeated over an outage."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from services.common.errors import DependencyUnavailable
from services.common.postgres import TRANSIENT_POSTGRES, retrying

T = TypeVar("T")

Connection = asyncpg.pool.PoolConnectionProxy
SCHEMA = "scheduler"
MIGRATIONS = Path(__file__).with_name("migrations")

_PATIENCE_SECONDS = 10.0


class Sessions:
    """Runs operations in transactions; each is repeated over an outage, so each must be safe to repeat."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def run(self, operation: Callable[[Connection], Awaitable[T]]) -> T:
        async def once() -> T:
            async with self._pool.acquire(timeout=_PATIENCE_SECONDS) as connection, connection.transaction():
                return await operation(connection)

        return await self._patiently(once)

    async def read(self, operation: Callable[[Connection], Awaitable[T]]) -> T:
        """Runs a single statement, which is a transaction of its own."""

        async def once() -> T:
            async with self._pool.acquire(timeout=_PATIENCE_SECONDS) as connection:
                return await operation(connection)

        return await self._patiently(once)

    async def fetch(self, statement: str, *values: object) -> list[asyncpg.Record]:
        return await self.read(lambda connection: connection.fetch(statement, *values))

    async def fetchrow(self, statement: str, *values: object) -> asyncpg.Record | None:
        return await self.read(lambda connection: connection.fetchrow(statement, *values))

    async def fetchval(self, statement: str, *values: object) -> Any:
        return await self.read(lambda connection: connection.fetchval(statement, *values))

    async def execute(self, statement: str, *values: object) -> None:
        await self.read(lambda connection: connection.execute(statement, *values))

    async def _patiently(self, once: Callable[[], Awaitable[T]]) -> T:
        try:
            return await retrying(once, patience_seconds=_PATIENCE_SECONDS)
        except TRANSIENT_POSTGRES as error:
            raise DependencyUnavailable(dependency="Postgres") from error
