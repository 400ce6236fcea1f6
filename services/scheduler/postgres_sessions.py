"""How the scheduler's stores talk to Postgres: patiently, and as the leader only while the term lasts."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import asyncpg

from services.common.errors import DependencyUnavailable
from services.common.postgres import TRANSIENT_POSTGRES, load_queries, retrying
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost

T = TypeVar("T")

Connection = asyncpg.pool.PoolConnectionProxy
SCHEMA = "scheduler"
MIGRATIONS = Path(__file__).with_name("migrations")
Queries = load_queries(Path(__file__).with_name("queries.sql"))

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
        """For a single statement, which is a transaction of its own."""

        async def once() -> T:
            async with self._pool.acquire(timeout=_PATIENCE_SECONDS) as connection:
                return await operation(connection)

        return await self._patiently(once)

    async def lead(self, token: FencingToken, operation: Callable[[Connection], Awaitable[T]]) -> T:
        """As `run`, but only while this term of leadership lasts."""

        async def fenced(connection: Connection) -> T:
            if await connection.fetchval(Queries["hold_term"], token) is None:
                raise LeadershipLost
            return await operation(connection)

        return await self.run(fenced)

    async def _patiently(self, once: Callable[[], Awaitable[T]]) -> T:
        try:
            return await retrying(once, patience_seconds=_PATIENCE_SECONDS)
        except TRANSIENT_POSTGRES as error:
            raise DependencyUnavailable(dependency="Postgres") from error
