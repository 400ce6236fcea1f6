"""The session of readers, which bounds how many queries run at a time and how long each may take."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import asyncpg

from services.common.errors import ReadTooSlow, TooManyReads
from services.common.postgres import PostgresSession
from services.common.sql.queries import Query
from services.common.sql.row_scope import RowScope, current_scope

# A client that repeats at once would only wait for the same slots again.
RETRY_AFTER_SECONDS = 2


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How many queries of readers run at a time, how long one waits for a slot, and how long it may run."""

    at_once: int
    wait_seconds: float
    statement_seconds: float


class ReadSession(PostgresSession):
    """Refuses reads above the limits, so that no reader waits for ever."""

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        queries: Mapping[str, Query],
        limits: ReadLimits,
        retry_seconds: float,
    ) -> None:
        super().__init__(pool, queries, retry_seconds=retry_seconds)
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

    def _scope_of_changes(self) -> RowScope:
        """Lists are read in transactions as well."""
        return current_scope()

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
