"""One leader: an advisory lock on a connection of its own, and a fencing token that each term raises."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from services.common.postgres import TRANSIENT_POSTGRES
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.postgres_sessions import Queries

log = get_logger()

_LOCK = "SELECT pg_try_advisory_lock(hashtext('proctor leader'), hashtext(current_schema()))"
_PAUSE_SECONDS = 0.5
_PING_SECONDS = 2.0


class PostgresLeaderTerm:
    """Ends when the connection does; a silent one is found out by asking."""

    def __init__(self, connection: asyncpg.Connection, token: FencingToken) -> None:
        self._connection = connection
        self._token = token

    @property
    def fencing_token(self) -> FencingToken:
        return self._token

    def give_up(self) -> None:
        self._connection.terminate()

    async def lost(self) -> None:
        closed = asyncio.Event()
        self._connection.add_termination_listener(lambda _: closed.set())
        while not closed.is_set():
            try:
                await self._connection.fetchval("SELECT 1")
            except TRANSIENT_POSTGRES as error:
                log.warning("the leader's connection is gone", error=repr(error))
                return
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    await closed.wait()
            except TimeoutError:
                continue


class PostgresLeaderElection:
    """Candidates for leadership of one schema."""

    def __init__(self, dsn: str, schema: str) -> None:
        self._dsn = dsn
        self._schema = schema

    @asynccontextmanager
    async def term(self) -> AsyncIterator[PostgresLeaderTerm]:
        term = await self._win()
        try:
            yield term
        finally:
            term.give_up()

    async def _win(self) -> PostgresLeaderTerm:
        while True:
            try:
                return await self._win_on(await lone_connection(self._dsn, self._schema))
            except TRANSIENT_POSTGRES as error:
                log.info("no leadership yet", error=repr(error))
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _win_on(self, connection: asyncpg.Connection) -> PostgresLeaderTerm:
        """Waits for the lock, which lives as long as the connection."""
        try:
            # Asked again and again, not waited for: a statement that hangs looks like a dead server.
            while True:
                if await connection.fetchval(_LOCK):
                    return PostgresLeaderTerm(
                        connection, FencingToken(await connection.fetchval(Queries["begin_term"]))
                    )
                await asyncio.sleep(_PAUSE_SECONDS)
        except BaseException:
            connection.terminate()
            raise


async def lone_connection(dsn: str, schema: str) -> asyncpg.Connection:
    """A connection outside of the pool, for a lock that is held as long as it lives."""
    settings = {"search_path": schema, "application_name": f"proctor-{schema}-leader"}
    return await asyncpg.connect(dsn, timeout=5, command_timeout=5, server_settings=settings)
