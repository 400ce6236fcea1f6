"""Postgres: a pool that waits for the server, and sessions that run queries by name."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from proctor.requirements import OLDEST_POSTGRES
from services.common.errors import (
    DependencyUnavailable,
    PostgresAway,
    PostgresRefused,
    PostgresTooOld,
    ProjectNotFound,
    UnstorableText,
)
from services.common.metrics import POSTGRES_CONNECTIONS, POSTGRES_RETRIES
from services.common.shared_settings import DEFAULT_RETRY_SECONDS
from services.common.sql.queries import Query
from services.common.sql.row_scope import ALL_ROWS, READABLE, WRITABLE, RowScope, current_scope
from services.common.sql.servers import PostgresServers
from services.common.structured_logs import get_logger

T = TypeVar("T")
Connection = asyncpg.pool.PoolConnectionProxy
log = get_logger()

# Errors after a restart, a failover, a full disk or a killed backend: whole classes of
# SQLSTATE (08, 53, 57, 58), for none of them says that the statement was wrong. InternalClientError has no
# closer base: asyncpg raises it when a backend dies between two protocol states.
TRANSIENT_POSTGRES: tuple[type[Exception], ...] = (
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    OSError,
    asyncio.TimeoutError,
)
# The values were wrong: repeating the statement would not help.
WRONG_DATA: tuple[type[Exception], ...] = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    # Too long for an index or for JSON.
    asyncpg.ProgramLimitExceededError,
    ValueError,
    UnstorableText,
)
# A NUL character in a text, or in a text of JSON.
_UNSTORABLE = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
# Wrong user, password or database, or no permission to connect; a wrong password is of the first kind.
_REFUSALS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)

# A failover of Postgres takes half a minute or so.
_OUTAGE_RETRY_SECONDS = 60.0
# Shorter: a service that is started by hand reports soon what is missing.
_CONNECT_RETRY_SECONDS = 20.0
# A stopping service closes several pools within its drain time; a server that responds takes milliseconds.
_CLOSE_SECONDS = 1.0
_SEE = "SELECT set_config($1, $2, false), set_config($3, $4, false)"
_SEES_ALL = {READABLE: ALL_ROWS.readable, WRITABLE: ALL_ROWS.writable}
# The function of Postgres that refuses a row; messages are in the language of the server.
_CHECKS_POLICIES = "ExecWithCheckOptions"
_UNREADABLE = "an address that cannot be read"
_MAY_BE_NO_CHARACTER = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# An escape at a time, so that a backslash before it is not taken for its own; pairs stay.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<refused>\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))|\\."
)
_HOST_AND_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[\w.-]+)?(?::\d+)?")


async def retrying(
    operation: Callable[[], Awaitable[T]], *, retry_seconds: float = _OUTAGE_RETRY_SECONDS
) -> T:
    """Repeats an operation while Postgres is away; the last failure is raised after `retry_seconds`.

    The operation must be safe to repeat: if the answer to a commit was lost, the commit may have happened.
    """
    attempts = AsyncRetrying(
        retry=retry_if_exception_type(TRANSIENT_POSTGRES),
        # Random, so that all replicas do not come back to a restarted server at once.
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        stop=stop_after_delay(retry_seconds),
        reraise=True,
    )
    return await attempts(operation)


async def connect_pool(
    dsn: str, *, schema: str, max_size: int = 8, statement_seconds: float = 0.0
) -> asyncpg.Pool:
    """A pool whose connections see one schema. Waits for the server for a while.

    Of several servers in the DSN it uses the one that takes writes.

    A statement that takes longer than `statement_seconds` is cancelled by the server; 0: never.
    """
    settings = {
        "search_path": schema,
        "application_name": f"proctor-{schema}",
        # Statements here are short; compiling one takes longer than running it.
        "jit": "off",
        "statement_timeout": str(round(statement_seconds * 1000)),
        **_SEES_ALL,
    }

    servers = PostgresServers(dsn)

    async def connect() -> asyncpg.Pool:
        return await asyncpg.create_pool(
            dsn,
            connect=servers.connect,
            connection_class=_ScopedConnection,
            min_size=1,
            max_size=max_size,
            # For a server that is cut off and never answers; `statement_timeout` cannot reach it.
            command_timeout=60,
            reset=_keep_session,
            server_settings=settings,
        )

    return await _connected(dsn, connect)


async def _connected(dsn: str, connect: Callable[[], Awaitable[T]]) -> T:
    """Waits for the server for a while, but not for a server that answers and refuses."""
    try:
        return await retrying(connect, retry_seconds=_CONNECT_RETRY_SECONDS)
    except _REFUSALS as error:
        raise PostgresRefused(address=address_of(dsn), problem=str(error)) from error
    except TRANSIENT_POSTGRES as error:
        raise PostgresAway(address=address_of(dsn)) from error


class _ScopedConnection(asyncpg.Connection):
    """Knows the scope of its session: most callers have that of the one before, without a round trip."""

    _scope: RowScope | None = ALL_ROWS

    async def see(self, scope: RowScope) -> None:
        if self._scope == scope:
            return
        # Unknown until the server has answered.
        self._scope = None
        await self.fetchval(_SEE, READABLE, scope.readable, WRITABLE, scope.writable)
        self._scope = scope


async def _see(connection: Connection, scope: RowScope) -> None:
    """A proxy passes on what it has not itself."""
    await cast("_ScopedConnection", connection).see(scope)


async def _keep_session(_: asyncpg.Connection) -> None:
    """Saves the round trip that resets a session: what one sees is set before it is used."""


def watch_pool(purpose: str, pool: asyncpg.Pool) -> None:
    """Its numbers of connections are read with the metrics. `purpose` says what they are for."""
    states = {"open": pool.get_size, "idle": pool.get_idle_size, "limit": pool.get_max_size}
    for state, read in states.items():
        POSTGRES_CONNECTIONS.labels(purpose, state).set_function(read)


async def connect_once(dsn: str) -> asyncpg.Connection:
    """A connection outside of a pool, for migrations and backups. Waits for the server for a while.

    It sees the rows of all projects: a migration must change all of them, and a backup save them.

    Raises `PostgresTooOld`.
    """
    connect = partial(PostgresServers(dsn).connect, server_settings=_SEES_ALL)
    connection = await _connected(dsn, connect)
    if connection.get_server_version().major < OLDEST_POSTGRES:
        # Without what a distribution adds: 16.14 (Debian 16.14-1.pgdg12+1).
        found = connection.get_settings().server_version.split()[0]
        await connection.close()
        raise PostgresTooOld(needed=OLDEST_POSTGRES, found=found, address=address_of(dsn))
    return connection


async def close_pool(pool: asyncpg.Pool) -> None:
    """Closes the connections. Does not wait for a Postgres that does not answer."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await pool.close()
    except TimeoutError:
        pool.terminate()


# Fetches the rows of a query, by name.
Fetch = Callable[..., Awaitable[list[asyncpg.Record]]]
# Makes the statement and the arguments of a query of its values, and may fetch what that takes.
MakeCall = Callable[[Query, Mapping[str, object], Fetch], Awaitable[list[Any]]]


class PostgresSession:
    """A service's queries on its pool, repeated over an outage: each must be safe to repeat.

    A value goes to the parameter of its name; a missing or unknown name raises TypeError.
    """

    # None: each query is its own statement.
    make_call: MakeCall | None = None

    def __init__(
        self,
        pool: asyncpg.Pool,
        queries: Mapping[str, Query],
        *,
        retry_seconds: float = DEFAULT_RETRY_SECONDS,
    ) -> None:
        self._pool = pool
        self._retry_seconds = retry_seconds
        self.queries = queries

    async def fetch(self, query: str, /, **values: object) -> list[asyncpg.Record]:
        """The rows of a query."""
        call = await self._made(query, values)
        return await self.repeat(lambda: self._call("fetch", call))

    async def fetchrow(self, query: str, /, **values: object) -> asyncpg.Record | None:
        """The first row of a query; None where it has none."""
        call = await self._made(query, values)
        return await self.repeat(lambda: self._call("fetchrow", call))

    async def fetchval(self, query: str, /, **values: object) -> Any:
        """The first column of the first row of a query; None where it has none."""
        call = await self._made(query, values)
        return await self.repeat(lambda: self._call("fetchval", call))

    async def execute(self, query: str, /, **values: object) -> None:
        """A query without rows."""
        call = await self._made(query, values)
        await self.repeat(lambda: self._call("execute", call))

    async def run(self, operation: "Callable[[PostgresTransaction], Awaitable[T]]") -> T:
        """An operation in a transaction of its own."""

        async def once() -> T:
            async with self.transaction() as transaction:
                return await operation(transaction)

        return await self.repeat(once)

    async def repeat(self, operation: Callable[[], Awaitable[T]]) -> T:
        """An operation, again and again while Postgres is away; raises DependencyUnavailable in the end.

        Raises `UnstorableText` for a text that Postgres does not take, wherever a caller put it, and
        `ProjectNotFound` for a row of a project in which the caller may store nothing.
        """

        async def again() -> T:
            return await operation()

        try:
            # The first attempt without tenacity, whose machinery costs more than a small query.
            return await operation()
        except _UNSTORABLE as error:
            raise UnstorableText from error
        except asyncpg.InsufficientPrivilegeError as error:
            if error.server_source_function == _CHECKS_POLICIES:
                raise ProjectNotFound from error
            raise
        except TRANSIENT_POSTGRES as error:
            log.info("query repeated", error=repr(error))
            POSTGRES_RETRIES.inc()
        try:
            return await retrying(again, retry_seconds=self._retry_seconds)
        except TRANSIENT_POSTGRES as error:
            raise DependencyUnavailable(dependency="Postgres") from error

    @asynccontextmanager
    async def transaction(
        self, *, isolation: Literal["repeatable_read"] | None = None
    ) -> "AsyncIterator[PostgresTransaction]":
        """Several queries that happen together or not at all; to be used within `repeat`.

        `isolation` None: as the server has it.
        """
        async with self._pool.acquire(timeout=self._retry_seconds) as connection:
            await _see(connection, self._scope_of_changes())
            async with connection.transaction(isolation=isolation):
                yield PostgresTransaction(connection, self.queries, self.make_call)

    async def _made(self, query: str, values: Mapping[str, object]) -> list[Any]:
        if self.make_call is None:
            return self.queries[query].call(values)
        return await self.make_call(self.queries[query], values, self.fetch)

    def _scope_of_changes(self) -> RowScope:
        """A transaction changes what its caller was shown before.

        It sees all rows: those that still use a data set may be of a project that its owner does not see.
        """
        return current_scope().reading_all()

    async def _call(self, method: str, call: list[Any]) -> Any:
        async with self._pool.acquire() as connection:
            await _see(connection, current_scope())
            return await getattr(connection, method)(*call)


class PostgresTransaction:
    """A transaction with the service's queries."""

    def __init__(
        self, connection: Connection, queries: Mapping[str, Query], make_call: MakeCall | None = None
    ) -> None:
        self.connection = connection
        self.queries = queries
        self._make_call = make_call

    async def fetch(self, query: str, /, **values: object) -> list[asyncpg.Record]:
        """The rows of a query."""
        call = await self._made(query, values)
        rows: list[asyncpg.Record] = await self.connection.fetch(*call)
        return rows

    async def fetchrow(self, query: str, /, **values: object) -> asyncpg.Record | None:
        """The first row of a query; None where it has none."""
        call = await self._made(query, values)
        row: asyncpg.Record | None = await self.connection.fetchrow(*call)
        return row

    async def fetchval(self, query: str, /, **values: object) -> Any:
        """The first column of the first row of a query; None where it has none."""
        call = await self._made(query, values)
        return await self.connection.fetchval(*call)

    async def execute(self, query: str, /, **values: object) -> None:
        """A query without rows."""
        call = await self._made(query, values)
        await self.connection.execute(*call)

    async def executemany(self, query: str, rows: Iterable[Mapping[str, object]]) -> None:
        """A query once for each row of values."""
        found = self.queries[query]
        await self.connection.executemany(found.statement, [found.arguments(row) for row in rows])

    async def _made(self, query: str, values: Mapping[str, object]) -> list[Any]:
        if self._make_call is None:
            return self.queries[query].call(values)
        return await self._make_call(self.queries[query], values, self.fetch)


def storable(text: str) -> str:
    """The text without NUL characters, which Postgres refuses and an answer of a model may have."""
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def storable_json(text: str) -> str:
    """JSON without escapes of NUL and of half a surrogate pair, which Postgres refuses in jsonb."""
    if not _MAY_BE_NO_CHARACTER.search(text):
        return text
    return _ESCAPE.sub(lambda found: r"\ufffd" if found["refused"] else found[0], text)


def address_of(dsn: str) -> str:
    """Host and port of a DSN. Nothing else is shown: a DSN may contain a password twice."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return _UNREADABLE
    query = parse_qs(parts.query)
    port = "".join(f":{port}" for port in query.get("port", ()))
    hosts = [host + port for host in query.get("host", ())] or parts.netloc.rpartition("@")[2].split(",")
    # A path is a folder with a socket.
    found = [host for host in hosts if host.startswith("/") or _HOST_AND_PORT.fullmatch(host)]
    return ",".join(found) or _UNREADABLE
