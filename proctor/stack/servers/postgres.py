"""Postgres of the local stack: its cluster is made on first use and kept; loopback only, with passwords.

A service that keeps something has a role without privileges over the server, and a schema that only it
may use.
"""

import contextlib
import hashlib
import hmac
import os
import pwd
import secrets
import shutil
import signal
from dataclasses import dataclass, field
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
# Each service's schema has the name of the service.
SCHEMAS = ("scheduler", "results")
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    home: PostgresHome
    address: str
    password: str = field(repr=False)

    @property
    def dsn(self) -> str:
        """The DSN of the server's owner, for the operator and for probes. Services do not use it."""
        return self._dsn(USER, self.password, DATABASE)

    def dsn_of(self, service: str) -> str:
        return self._dsn(_role(service), self._password_of(service), DATABASE)

    def _dsn(self, user: str, password: str, database: str) -> str:
        return f"postgresql://{user}:{password}@{self.address}/{database}"

    def _password_of(self, service: str) -> str:
        # Derived from one stored password; hexadecimal, so that SQL and URLs need no quoting.
        return hmac.new(self.password.encode(), service.encode(), hashlib.sha256).hexdigest()

    def child(self) -> ChildSpec:
        """SIGINT is Postgres's fast stop; its default for SIGTERM waits for every client to leave."""
        return ChildSpec(
            name="postgres",
            # SIGQUIT ends all its processes at once; after SIGKILL of the first the others would live on.
            program=Program(self._command(), ENVIRONMENT, self.home.user, death_signal=signal.SIGQUIT),
            is_ready=self._is_ready,
            # After a crash Postgres replays its log first, which takes as long as it takes.
            ready_timeout_seconds=300.0,
            stop_signal=signal.SIGINT,
            stop_timeout_seconds=30.0,
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
            return await postgres_answers(self.dsn) and await self._run(self.dsn, self._roles())
        except asyncpg.InvalidCatalogNameError:
            maintenance = self._dsn(USER, self.password, MAINTENANCE_DATABASE)
            await self._run(maintenance, f"CREATE DATABASE {DATABASE}")
            # The next probe finds the database, and makes the roles.
            return False

    async def _run(self, dsn: str, statements: str) -> bool:
        """Whether the statements ran. If not, the next probe tries them again."""
        with contextlib.suppress(*CONNECTION_ERRORS):
            connection = await asyncpg.connect(dsn, timeout=2)
            try:
                await connection.execute(statements, timeout=30)
            finally:
                await connection.close(timeout=2)
            return True
        return False

    def _roles(self) -> str:
        """Makes roles at each start.

        An existing role keeps what it owns and gets the password of this cluster.
        """
        statements = [
            f"REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC",
            "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        ]
        for service in SCHEMAS:
            role, password = _role(service), self._password_of(service)
            statements += (
                f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
                f"ALTER ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '{password}'",
                f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {DATABASE} TO {role}",
                f"CREATE SCHEMA IF NOT EXISTS {service} AUTHORIZATION {role}",
            )
        return ";\n".join(statements)


def _role(service: str) -> str:
    return f"{USER}_{service}"


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
