"""One leader and one clock: an advisory lock with a fencing token that each term raises, and the time.

A machine whose own clock is off decides nothing by it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NoReturn, TypeVar

import asyncpg

from services.common.clock import Clock
from services.common.lifecycle import every
from services.common.postgres import TRANSIENT_POSTGRES, PostgresSession, PostgresTransaction
from services.common.sql.servers import PostgresServers
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.postgres import QUERIES

log = get_logger()

T = TypeVar("T")

# Also the longest pause without a leader after one that ended cleanly.
_RETRY_SECONDS = 0.5
# With `command_timeout` below, a server that is cut off is noticed within 7 seconds.
_PING_SECONDS = 2.0
_SILENCE_SECONDS = 15

# Machines drift by less than 0.1 ms a second, so replicas differ by milliseconds between two readings.
_SYNC_SECONDS = 30.0
# Less is usual without NTP and changes nothing here; more puzzles those who read the logs of two machines.
_NOTICED_SECONDS = 5.0


async def run_as_leader(
    session: PostgresSession, token: FencingToken, operation: Callable[[PostgresTransaction], Awaitable[T]]
) -> T:
    """Runs the operation in a transaction that commits only in this term. Raises `LeadershipLost`."""

    async def fenced(transaction: PostgresTransaction) -> T:
        # First in the transaction: the row stays locked, so no new term starts before the commit.
        if await transaction.fetchval("lock_term", fencing_token=token) is None:
            raise LeadershipLost
        return await operation(transaction)

    return await session.run(fenced)


async def write_as_leader(
    session: PostgresSession, token: FencingToken, query: str, /, **values: object
) -> bool:
    """Whether the statement, run as above, returned a row."""
    found = await run_as_leader(session, token, lambda transaction: transaction.fetchval(query, **values))
    return found is not None


class PostgresLeaderTerm:
    """Ends with its connection. A server that does not answer is noticed by a ping."""

    def __init__(self, connection: asyncpg.Connection, token: FencingToken) -> None:
        self._connection = connection
        self.fencing_token = token

    def give_up(self) -> None:
        # Not `close`: that waits for a server which may be away, and the lock has to go now.
        self._connection.terminate()

    async def lost(self) -> None:
        closed = asyncio.Event()
        self._connection.add_termination_listener(lambda _: closed.set())
        while not closed.is_set():
            try:
                await self._connection.fetchval("SELECT 1")
            except TRANSIENT_POSTGRES as error:
                log.warning("connection of the leader lost", error=repr(error))
                return
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    await closed.wait()
            except TimeoutError:
                continue


class PostgresLeaderElection:
    """Elects one leader for each schema."""

    def __init__(self, dsn: str, schema: str) -> None:
        self._servers = PostgresServers(dsn)
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
                return await self._win_on(await self._connect())
            except TRANSIENT_POSTGRES as error:
                log.info("not elected yet", error=repr(error))
                await asyncio.sleep(_RETRY_SECONDS)

    async def _connect(self) -> asyncpg.Connection:
        """A connection outside of the pool, since the lock lives as long as its connection."""
        settings = {
            "search_path": self._schema,
            "application_name": f"proctor-{self._schema}-leader",
            # A leader that hangs closes no connection: the server ends a session without pings, and its lock.
            "idle_session_timeout": f"{_SILENCE_SECONDS}s",
        }
        # Short limits: this session is how the loss of the server is noticed.
        return await self._servers.connect(command_timeout=5, server_settings=settings)

    async def _win_on(self, connection: asyncpg.Connection) -> PostgresLeaderTerm:
        try:
            # The lock is polled: a statement that waits for it looks like a dead server.
            while True:
                if await connection.fetchval(QUERIES["lock_leadership"].statement):
                    token = await connection.fetchval(QUERIES["begin_term"].statement)
                    return PostgresLeaderTerm(connection, FencingToken(token))
                await asyncio.sleep(_RETRY_SECONDS)
        # Also when cancelled: a connection that is left open would keep the lock without a leader.
        except BaseException:
            connection.terminate()
            raise


class PostgresClock:
    """Postgres is asked twice a minute. In between the machine counts seconds, which no set clock moves."""

    def __init__(self, session: PostgresSession, machine: Clock) -> None:
        self._session = session
        self._machine = machine
        self._read_at = machine.monotonic()
        self._time = machine.now()

    def now(self) -> datetime:
        return self._time + timedelta(seconds=self._machine.monotonic() - self._read_at)

    def monotonic(self) -> float:
        return self._machine.monotonic()

    async def sync(self) -> None:
        async def read(transaction: PostgresTransaction) -> tuple[datetime, float]:
            asked_at = self._machine.monotonic()
            time: datetime = await transaction.fetchval("read_time")
            # Postgres read its clock between asking and answer; the middle halves the error.
            return time, (asked_at + self._machine.monotonic()) / 2

        self._time, self._read_at = await self._session.run(read)
        ahead = (self._machine.now() - self.now()).total_seconds()
        if abs(ahead) > _NOTICED_SECONDS:
            log.warning("clock of this machine differs from that of postgres", ahead_seconds=round(ahead, 1))

    async def keep(self) -> NoReturn:
        """Keeps the time, for ever."""
        await every(_SYNC_SECONDS, self.sync, name="read the clock of postgres")
