"""Opens the Postgres sessions of a service: a pool of its own for each purpose, and one for readers."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

import asyncpg

from services.common.postgres import PostgresSession, close_pool, connect_pool, watch_pool
from services.common.requests.read_session import ReadLimits, ReadSession
from services.common.sql.queries import Query


class SessionSettings(Protocol):
    """Settings that every service with a schema has."""

    @property
    def postgres_dsn(self) -> str: ...

    @property
    def retry_seconds(self) -> float:
        """How long a call waits for Postgres to return."""
        ...

    @property
    def read_connections(self) -> int:
        """How many queries of readers run at a time."""
        ...

    @property
    def read_wait_seconds(self) -> float: ...

    @property
    def read_timeout_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpener:
    """Opens sessions on one schema; `opened` closes their pools."""

    settings: SessionSettings
    schema: str
    queries: Mapping[str, Query]
    opened: AsyncExitStack

    async def session(self, purpose: str, connections: int) -> PostgresSession:
        """A session with a pool of its own, so that it waits for the connections of no other."""
        pool = await self._pool(purpose, connections)
        return PostgresSession(pool=pool, queries=self.queries, retry_seconds=self.settings.retry_seconds)

    async def reads(self) -> ReadSession:
        """The session of lists and searches, which delay no other."""
        limits = ReadLimits(
            at_once=self.settings.read_connections,
            wait_seconds=self.settings.read_wait_seconds,
            statement_seconds=self.settings.read_timeout_seconds,
        )
        pool = await self._pool("reads", limits.at_once, limits.statement_seconds)
        return ReadSession(
            pool=pool,
            queries=self.queries,
            limits=limits,
            retry_seconds=self.settings.retry_seconds,
        )

    async def _pool(self, purpose: str, connections: int, statement_seconds: float = 0.0) -> asyncpg.Pool:
        pool = await connect_pool(
            self.settings.postgres_dsn,
            schema=self.schema,
            max_size=connections,
            statement_seconds=statement_seconds,
        )
        self.opened.push_async_callback(close_pool, pool)
        watch_pool(purpose, pool)
        return pool
