"""A real Postgres and a real nats-server for tests: each starts in a second and comes back when killed."""

import asyncio
import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import asyncpg

from proctor.stack.servers.nats import prepare_nats
from proctor.stack.servers.postgres import ENVIRONMENT, SCHEMAS, prepare_postgres
from proctor.stack.servers.postgres_home import PostgresHome, find_postgres_home
from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.child import ChildContext, ChildSpec, SupervisedChild
from proctor.stack.supervision.process import Program, spawn
from services.common.nats.connection import connect_nats
from services.common.nats.stream_maker import StreamMaker
from tests.fakes.stack.state_dir import temporary_state_dir

START_SECONDS = 60.0
# The pools of most tests.
POOLS = ("local", "remote")


@dataclass(frozen=True)
class RunningServer:
    """A server with the address that clients use: a DSN or a URL.

    `passwords` are those of the services' roles, as far as it is a Postgres.
    """

    child: SupervisedChild
    address: str
    passwords: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def postgres_server() -> AsyncIterator[RunningServer]:
    with temporary_state_dir() as state_dir:
        state_dir.mkdir()
        [address] = choose_addresses(1)
        log_path = state_dir.with_name("postgres.log")
        home = await give_cluster(state_dir, log_path)
        server = await prepare_postgres(home, address, log_path)
        async with _running(server.child(), log_path) as child:
            passwords = {service: str(urlsplit(server.dsn_of(service)).password) for service in SCHEMAS}
            yield RunningServer(child, server.dsn, passwords)


@cache
def clusters() -> Path:
    """Kept until this process ends: those that are forked from it share them."""
    folder, this = Path(tempfile.mkdtemp(prefix="proctor-test-cluster-")), os.getpid()

    def remove() -> None:
        if os.getpid() == this:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


async def ordinary_role(dsn: str) -> str:
    """The DSN of a role that owns its tables and for which policies hold, as services have one.

    `dsn` is that of a superuser, to a database in which nothing was made yet.
    """
    connection = await asyncpg.connect(dsn)
    try:
        database = await connection.fetchval("SELECT current_database()")
        await connection.execute(
            "CREATE ROLE ordinary LOGIN PASSWORD 'secret';"
            f"GRANT CREATE, CONNECT, TEMPORARY ON DATABASE {database} TO ordinary;"
            # They are of the roles of a local stack.
            "DROP SCHEMA IF EXISTS scheduler, results"
        )
    finally:
        await connection.close()
    return f"postgresql://ordinary:secret@{dsn.rpartition('@')[2]}"


async def give_cluster(state_dir: Path, log_path: Path) -> PostgresHome:
    """Puts a cluster without tables where Postgres looks for one.

    The first is made by initdb and a first start, which takes seconds; the others are copies of it.
    """
    home, made = find_postgres_home(state_dir), clusters() / "cluster"
    if not made.exists():
        with (clusters() / "lock").open("w") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            if not made.exists():
                return await _make_cluster(home, made, log_path)
    await _copy(made, home.folder)
    return home


async def _make_cluster(home: PostgresHome, made: Path, log_path: Path) -> PostgresHome:
    [address] = choose_addresses(1)
    server = await prepare_postgres(home, address, log_path)
    with (home.data / "postgresql.conf").open("a", encoding="utf-8") as settings:
        # Only a crash of the machine would lose what was written, and no test is one.
        settings.write("fsync = off\n")
    # Once it has been ready, copies of it have the database of the services.
    async with _running(server.child(), log_path):
        connection = await asyncpg.connect(server.dsn)
        try:
            await connection.execute(
                "UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'"
            )
            await connection.execute("DROP DATABASE template0")
        finally:
            await connection.close()
    await _shorten_log(home, log_path)
    with TemporaryDirectory(dir=clusters()) as draft:
        await _copy(home.folder, Path(draft) / "cluster")
        (Path(draft) / "cluster").rename(made)
    return home


async def _shorten_log(home: PostgresHome, log_path: Path) -> None:
    """An empty log in segments of 1 MiB: each copy of the cluster would have one of 16 MiB."""
    command = (str(home.programs / "pg_resetwal"), "--wal-segsize=1", str(home.data))
    process = await spawn(Program(command, ENVIRONMENT, home.user), log_path)
    assert await process.wait() == 0, log_path.read_text(encoding="utf-8")


async def _copy(source: Path, to: Path) -> None:
    """With the owners: Postgres refuses to run as root."""
    process = await asyncio.create_subprocess_exec("cp", "--archive", "--no-target-directory", source, to)
    assert await process.wait() == 0


@asynccontextmanager
async def nats_server(
    pools: Sequence[str] = POOLS,
    *,
    environment: Mapping[str, str] | None = None,
    store_bytes: int | None = None,
) -> AsyncIterator[RunningServer]:
    """With the streams and buckets that a scheduler makes, and the small heap of a local stack by default.

    `store_bytes`: what it has for streams; by default a part of the disk.
    """
    with temporary_state_dir() as state_dir:
        state_dir.mkdir()
        [address] = choose_addresses(1)
        server = prepare_nats(state_dir, address, pools)
        if store_bytes is not None:
            settings = json.loads(server.config_file.read_text(encoding="utf-8"))
            settings["jetstream"]["max_file_store"] = store_bytes
            server.config_file.write_text(json.dumps(settings), encoding="utf-8")
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
    child = SupervisedChild(spec, ChildContext(log_path, report=print, on_change=lambda: None))
    try:
        await asyncio.wait_for(asyncio.shield(child.first_ready), START_SECONDS)
        yield child
    finally:
        await child.stop()
