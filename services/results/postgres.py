"""The schema of results, the queries of all of its topics by name, and the session of readers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import asyncpg

from services.common.errors import DomainError, ErrorKind
from services.common.postgres import PostgresSession, load_queries

SCHEMA = "results"
MIGRATIONS = Path(__file__).parent / "migrations"
QUERIES = load_queries(*sorted(Path(__file__).parent.glob("*/queries.sql")))

# A client that repeats at once would only wait for the same slots again.
RETRY_AFTER_SECONDS = 2

T = TypeVar("T")


class TooManyReads(DomainError):
    """Too many read results at once; try again in {retry_after_seconds} seconds."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"


class ReadTooSlow(DomainError):
    """This was not read within {seconds:g} s; ask for less, or again in {retry_after_seconds} seconds."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How many queries of readers run at a time, how long one waits for that, and how long it may take."""

    at_once: int
    wait_seconds: float
    statement_seconds: float


class ReadSession(PostgresSession):
    """Refuses what passes the limits, so that readers wait in no queue without an end."""

    def __init__(self, *, pool: asyncpg.Pool, limits: ReadLimits, patience_seconds: float) -> None:
        super().__init__(pool, QUERIES, patience_seconds=patience_seconds)
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.at_once)

    async def repeat(self, operation: Callable[[], Awaitable[T]]) -> T:
        async def once() -> T:
            try:
                return await operation()
            except asyncpg.QueryCanceledError as error:
                seconds = self._limits.statement_seconds
                raise ReadTooSlow(seconds=seconds, retry_after_seconds=RETRY_AFTER_SECONDS) from error

        async with self._slot():
            return await super().repeat(once)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await self._slots.acquire()
        except TimeoutError as error:
            raise TooManyReads(retry_after_seconds=RETRY_AFTER_SECONDS) from error
        try:
            yield
        finally:
            self._slots.release()
