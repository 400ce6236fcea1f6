"""Postgres of the local stack: its cluster is made on first use and kept; loopback only, with a password."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from proctor.stack.errors import ChildFailedToStart, StateFolderUnusable
from proctor.stack.servers.postgres_home import PostgresHome
from proctor.stack.supervision import process as child_logs
from proctor.stack.supervision.addresses import split_address
from proctor.stack.supervision.child import ChildSpec
from proctor.stack.supervision.probes import CONNECTION_ERRORS, postgres_answers
from proctor.stack.supervision.process import Program, kill_group, spawn

MAJOR_VERSION = "18"
USER = "proctor"
DATABASE = "proctor"
MAINTENANCE_DATABASE = "postgres"
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    home: PostgresHome
    address: str
    password: str

    @property
    def dsn(self) -> str:
        return self.dsn_of(DATABASE)

    def dsn_of(self, database: str) -> str:
        return f"postgresql://{USER}:{self.password}@{self.address}/{database}"

    def child(self) -> ChildSpec:
        """SIGINT is Postgres's fast stop; its default for SIGTERM waits for every client to leave."""
        return ChildSpec(
            name="postgres",
            program=Program(self._command(), ENVIRONMENT, self.home.user, death_signal=signal.SIGQUIT),
            is_ready=self._is_ready,
            ready_limit_seconds=120.0,
            stop_signal=signal.SIGINT,
            stop_limit_seconds=30.0,
        )

    def _command(self) -> tuple[str, ...]:
        host, port = split_address(self.address)
        settings = {
            "listen_addresses": host,
            "port": str(port),
            # No socket file: its path would have to be short and reachable, and the port is enough.
            "unix_socket_directories": "",
            "timezone": "UTC",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return (str(self.home.programs / "postgres"), "-D", str(self.home.data), *flags)

    async def _is_ready(self) -> bool:
        try:
            return await postgres_answers(self.dsn)
        except asyncpg.InvalidCatalogNameError:
            await self._create_database()
            return False

    async def _create_database(self) -> None:
        """Failing is no matter: the next probe sees what became of it."""
        with contextlib.suppress(*CONNECTION_ERRORS):
            connection = await asyncpg.connect(self.dsn_of(MAINTENANCE_DATABASE), timeout=2)
            try:
                await connection.execute(f"CREATE DATABASE {DATABASE}", timeout=30)
            finally:
                await connection.close(timeout=2)


async def prepare_postgres(home: PostgresHome, address: str, log_path: Path) -> PostgresServer:
    """Makes the cluster where there is none; one that was half made (no `data` yet) is made anew."""
    if home.data.exists():
        _require_same_version(home)
        return PostgresServer(home, address, _read_password(home))
    password = secrets.token_urlsafe(24)
    _write_password(home, password)
    await _initdb(home, log_path)
    return PostgresServer(home, address, password)


async def _initdb(home: PostgresHome, log_path: Path) -> None:
    draft = home.folder / "data.new"
    shutil.rmtree(draft, ignore_errors=True)
    log_start = child_logs.log_size(log_path)
    process = await spawn(Program(_initdb_command(home, draft), ENVIRONMENT, home.user), log_path)
    try:
        code = await process.wait()
    finally:
        kill_group(process.pid)
    if code != 0:
        tail = child_logs.log_tail(log_path, log_start)
        raise ChildFailedToStart("postgres", "could not make its data folder (initdb)", log_path, tail)
    draft.rename(home.data)


def _initdb_command(home: PostgresHome, data: Path) -> tuple[str, ...]:
    initdb = str(home.programs / "initdb")
    access = ("--auth-local=reject", "--auth-host=scram-sha-256", f"--pwfile={home.password_file}")
    locale = ("--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
    return (initdb, "-D", str(data), "-U", USER, *access, *locale)


def _require_same_version(home: PostgresHome) -> None:
    version = (home.data / "PG_VERSION").read_text(encoding="utf-8").strip()
    if version != MAJOR_VERSION:
        reason = f"it is of Postgres {version}, and this is Postgres {MAJOR_VERSION}"
        raise StateFolderUnusable(folder=home.data, reason=reason)


def _read_password(home: PostgresHome) -> str:
    try:
        return home.password_file.read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        reason = "the file `password` of its Postgres is missing"
        raise StateFolderUnusable(folder=home.folder, reason=reason) from error


def _write_password(home: PostgresHome, password: str) -> None:
    descriptor = os.open(home.password_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(password + "\n")
        if home.user is not None:
            owner = pwd.getpwnam(home.user)
            os.fchown(file.fileno(), owner.pw_uid, owner.pw_gid)
