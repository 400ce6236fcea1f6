"""Several servers in a DSN: the one that takes writes is found, also beside one that says nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
import pytest_asyncio

from proctor.stack.supervision.addresses import choose_addresses
from services.common.postgres import connect_pool
from services.common.sql.servers import PostgresServers
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dsn() -> AsyncIterator[str]:
    async with postgres_server() as server:
        yield server.address


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """Takes connections and says nothing, as a machine that hangs."""

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(wait, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def with_hosts(dsn: str, *hosts: str) -> str:
    """The DSN with other servers before its own."""
    user, _, rest = dsn.partition("@")
    return f"{user}@{','.join(hosts)},{rest}"


async def test_server_that_says_nothing_leaves_time_for_the_next(dsn: str) -> None:
    [nobody] = choose_addresses(1)
    async with silent_server() as silent:
        servers = PostgresServers(with_hosts(dsn, nobody, silent))
        connection = await servers.connect(timeout=0.5)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close(timeout=5)
        # The next connection asks the one that answered first: it takes no half second.
        async with asyncio.timeout(0.4):
            again = await servers.connect(timeout=30)
        await again.close(timeout=5)


async def test_pool_takes_several_servers(dsn: str) -> None:
    [nobody] = choose_addresses(1)
    pool = await connect_pool(with_hosts(dsn, nobody), schema="public")
    try:
        assert await pool.fetchval("SELECT current_setting('application_name')") == "proctor-public"
    finally:
        await pool.close()


async def test_server_that_only_reads_is_not_taken(dsn: str) -> None:
    # As a standby is, to a client: it says so when it greets.
    with pytest.raises(asyncpg.TargetServerAttributeNotMatched):
        await PostgresServers(dsn).connect(server_settings={"default_transaction_read_only": "on"})


async def test_both_sides_notice_a_machine_that_vanished(dsn: str) -> None:
    connection = await PostgresServers(dsn).connect(server_settings={"application_name": "mine"})
    try:
        assert await connection.fetchval("SHOW tcp_keepalives_idle") == "10"
        assert await connection.fetchval("SHOW tcp_user_timeout") == "20000"
        assert await connection.fetchval("SHOW application_name") == "mine"
        mine = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]  # it has no public name
        assert mine.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
    finally:
        await connection.close(timeout=5)
