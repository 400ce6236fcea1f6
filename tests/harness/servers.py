"""A real Postgres and a real nats-server for tests: each starts in a second and comes back when killed."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.stack.servers.nats import prepare_nats
from proctor.stack.servers.postgres import prepare_postgres
from proctor.stack.servers.postgres_home import find_postgres_home
from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.child import ChildSpec, SupervisedChild, Surroundings
from services.common.nats.connection import connect_nats
from services.common.nats.streams import StreamMaker
from tests.fakes.stack.state_dir import temporary_state_dir

START_SECONDS = 60.0
# The pools of most tests.
POOLS = ("local", "remote")


@dataclass(frozen=True)
class RunningServer:
    """A server with the address that clients use: a DSN or a URL."""

    child: SupervisedChild
    address: str


@asynccontextmanager
async def postgres_server() -> AsyncIterator[RunningServer]:
    with temporary_state_dir() as state_dir:
        state_dir.mkdir()
        [address] = choose_addresses(1)
        log_path = state_dir.with_name("postgres.log")
        server = await prepare_postgres(find_postgres_home(state_dir), address, log_path)
        async with _running(server.child(), log_path) as child:
            yield RunningServer(child, server.dsn)


@asynccontextmanager
async def nats_server(
    pools: Sequence[str] = POOLS, *, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningServer]:
    """With the streams and buckets that a scheduler makes, and the small heap of a local stack by default."""
    with temporary_state_dir() as state_dir:
        state_dir.mkdir()
        [address] = choose_addresses(1)
        server = prepare_nats(state_dir, address, pools)
        spec = server.child()
        if environment is not None:
            spec = replace(spec, program=replace(spec.program, environment=environment))
        async with _running(spec, state_dir.with_name("nats.log")) as child:
            connection = await connect_nats(server.url(), "streams")
            await StreamMaker(connection, pools).make_missing()
            await connection.close()
            yield RunningServer(child, server.url())


@asynccontextmanager
async def _running(spec: ChildSpec, log_path: Path) -> AsyncIterator[SupervisedChild]:
    child = SupervisedChild(spec, Surroundings(log_path, report=print, on_change=lambda: None))
    try:
        await asyncio.wait_for(asyncio.shield(child.first_ready), START_SECONDS)
        yield child
    finally:
        await child.stop()
