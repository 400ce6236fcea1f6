"""Two Postgres: a primary whose commits wait for its standby, and the standby, which can be promoted."""

import asyncio
import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import asyncpg

from proctor.stack.servers.postgres import ENVIRONMENT, PostgresServer
from proctor.stack.servers.postgres_home import PostgresHome
from proctor.stack.supervision.child import ChildSpec
from proctor.stack.supervision.probes import postgres_answers
from proctor.stack.supervision.process import Program, kill_group, log_tail, spawn
from tests.fakes.eventually import eventually

_COPY_SECONDS = 60.0
# Set once the standby streams: without it a commit would wait for ever.
_SYNCHRONOUS = ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
_IS_STREAMING = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"


@dataclass(frozen=True, slots=True)
class PostgresPair(PostgresServer):
    """A client gets both addresses, and takes the one that writes."""

    standby: PostgresServer | None = None

    def _dsn(self, user: str, password: str, database: str) -> str:
        assert self.standby is not None
        hosts = f"{self.address},{self.standby.address}"
        return f"postgresql://{user}:{password}@{hosts}/{database}?target_session_attrs=read-write"


def pair_of(primary: PostgresServer, standby: PostgresServer) -> PostgresPair:
    return PostgresPair(primary.home, primary.address, primary.password, standby)


def child_of(server: PostgresServer, name: str) -> ChildSpec:
    return replace(server.child(), name=name)


def standby_child(standby: PostgresServer, name: str) -> ChildSpec:
    """It only reads until it is promoted, so that it is asked for an answer and makes no roles."""
    return replace(standby.child(), name=name, is_ready=partial(postgres_answers, standby.dsn))


async def copy_primary(primary: PostgresServer, address: str, log_path: Path) -> PostgresServer:
    """A standby of the primary that runs. It has the primary's passwords."""
    folder = primary.home.folder / "standby"
    folder.mkdir(mode=0o700)
    if primary.home.user is not None:
        shutil.chown(folder, primary.home.user)
    home = PostgresHome(primary.home.programs, folder, primary.home.user)
    command = (
        str(home.programs / "pg_basebackup"),
        *("--pgdata", str(home.data), "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf"),
        *("--dbname", primary.dsn.rpartition("/")[0]),
    )
    process = await spawn(Program(command, ENVIRONMENT, home.user), log_path)
    try:
        async with asyncio.timeout(_COPY_SECONDS):
            code = await process.wait()
    finally:
        kill_group(process.pid)
    assert code == 0, log_tail(log_path)
    return PostgresServer(home, address, primary.password)


async def commit_at_both(primary: PostgresServer) -> None:
    """From now on a commit returns when the standby has it too."""
    connection = await asyncpg.connect(primary.dsn, timeout=10)
    try:
        for statement in _SYNCHRONOUS:
            await connection.execute(statement)

        async def is_streaming() -> bool:
            return bool(await connection.fetchval(_IS_STREAMING))

        await eventually(is_streaming, "the standby streams")
    finally:
        await connection.close(timeout=10)


async def promote(standby: PostgresServer) -> None:
    """As a failover tool does, once the primary is gone for sure. It waits for no other standby."""
    connection = await asyncpg.connect(standby.dsn, timeout=10)
    try:
        assert await connection.fetchval("SELECT pg_promote(true, 30)")
    finally:
        await connection.close(timeout=10)
