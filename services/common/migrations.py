"""Forward migrations of a service's schema, applied under a lock while other replicas serve.

The first line of a migration, `-- compatible-from: 0001_initial.sql`, says which code can use the schema
after it: code that has that migration. So a replica of the release before may restart after a newer one has
migrated, and a release may be rolled back.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import asyncpg

from services.common.errors import (
    DomainError,
    MigrationBlocked,
    SchemaTooNew,
    SchemaTooOld,
)
from services.common.postgres import connect_once
from services.common.process import ProcessSettings, read_settings
from services.common.structured_logs import get_logger

log = get_logger()

_COMPATIBLE_FROM = re.compile(r"\A-- compatible-from: (?P<name>\S+)$", re.MULTILINE)
# A statement that waits for a table lock holds up every query that comes after it.
_LOCK_SECONDS = 2.0
# In the pause the queries that piled up behind the lock go through.
_PAUSE_SECONDS = 1.0
# A vacuum or a long report ends in minutes; what takes longer needs a person.
_TIMEOUT_SECONDS = 300.0
# An advisory lock is polled, so that a proxy does not close the connection of a waiting replica as idle.
_POLL_SECONDS = 0.2


class SchemaSettings(ProcessSettings, Protocol):
    """The settings of a service that has a schema."""

    @property
    def postgres_dsn(self) -> str: ...

    @property
    def migrate_on_start(self) -> bool: ...


S = TypeVar("S", bound=SchemaSettings)
# The argument of a service that only migrates.
MIGRATE = "migrate"


@dataclass(frozen=True, slots=True)
class Migration:
    """`compatible_from` is the first migration whose code can use the schema after this one."""

    name: str
    sql: str
    compatible_from: str


@dataclass(frozen=True, slots=True)
class LockTimeouts:
    """How long one try waits for table locks, the pause after it, and the time for all tries."""

    lock_seconds: float = _LOCK_SECONDS
    pause_seconds: float = _PAUSE_SECONDS
    total_seconds: float = _TIMEOUT_SECONDS


def read_migrations(folder: Path) -> list[Migration]:
    """The migrations in order. A file without the mark is compatible with no code before it."""
    found = []
    for file in sorted(folder.glob("*.sql")):
        sql = file.read_text(encoding="utf-8")
        mark = _COMPATIBLE_FROM.match(sql)
        found.append(Migration(file.name, sql, mark["name"] if mark else file.name))
    return found


def start_migration(schema: str, settings_class: type[S], folder: Path) -> int:
    """The command `python -m services.{schema} migrate`. Returns its exit code."""
    settings = read_settings(schema, settings_class)
    if settings is None:
        return 1
    try:
        asyncio.run(migrate(settings.postgres_dsn, schema, folder))
    except DomainError as error:
        log.error("not migrated", message=error.message, reason=error.reason)
        return 1
    return 0


async def prepare_schema(settings: SchemaSettings, schema: str, folder: Path) -> None:
    """Migrates, or checks where the service may not."""
    if settings.migrate_on_start:
        await migrate(settings.postgres_dsn, schema, folder)
    else:
        await check_schema(settings.postgres_dsn, schema, folder)


async def migrate(
    dsn: str,
    schema: str,
    folder: Path,
    *,
    timeouts: LockTimeouts | None = None,
    only: Collection[str] | None = None,
) -> None:
    """Applies each file of `folder` once, in order; `only` names those of an older release.

    Raises SchemaTooNew and MigrationBlocked.
    """
    migrations = [each for each in read_migrations(folder) if only is None or each.name in only]
    # Not from a pool: the lock lives as long as the connection, and a pool may close one.
    connection = await connect_once(dsn)
    try:
        # Before reading what is applied: replicas that start together would apply it twice.
        await _lock(connection, schema)
        await _open_schema(connection, schema)
        applied = await _applied(connection)
        # Before anything is changed: an older release must not add to a schema that it cannot read.
        _raise_if_too_new(schema, migrations, applied)
        for migration in migrations:
            if migration.name not in applied:
                await _apply(connection, schema, migration, timeouts or LockTimeouts())
    finally:
        await connection.close()


async def check_schema(dsn: str, schema: str, folder: Path) -> None:
    """Checks the schema for a role that may not change tables. Raises SchemaTooNew and SchemaTooOld."""
    migrations = read_migrations(folder)
    connection = await connect_once(dsn)
    try:
        await connection.execute(f'SET search_path = "{schema}"')
        try:
            applied = await _applied(connection)
        except asyncpg.UndefinedTableError:
            applied = {}
    finally:
        await connection.close()
    _raise_if_too_new(schema, migrations, applied)
    missing = next((each.name for each in migrations if each.name not in applied), None)
    if missing is not None:
        raise SchemaTooOld(schema=schema, migration=missing)


async def _lock(connection: asyncpg.Connection, schema: str) -> None:
    """Released with the connection."""
    key = f"proctor migrations {schema}"
    while not await connection.fetchval("SELECT pg_try_advisory_lock(hashtext($1))", key):  # noqa: ASYNC110  # the lock is another process's
        await asyncio.sleep(_POLL_SECONDS)


async def _open_schema(connection: asyncpg.Connection, schema: str) -> None:
    await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    await connection.execute(f'SET search_path = "{schema}"')
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations ("
        " name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now(),"
        " compatible_from text NOT NULL)"
    )


async def _applied(connection: asyncpg.Connection) -> dict[str, str]:
    """Name to the first migration whose code can use the schema after it."""
    rows = await connection.fetch("SELECT name, compatible_from FROM migrations")
    return {row["name"]: row["compatible_from"] for row in rows}


def _raise_if_too_new(schema: str, known: Sequence[Migration], applied: Mapping[str, str]) -> None:
    """A migration of this release is compatible with its code, whatever the stored mark says."""
    names = {each.name for each in known}
    needed = max((needs for name, needs in applied.items() if name not in names), default="")
    newest = max(names, default="")
    if needed > newest:
        raise SchemaTooNew(schema=schema, needed=needed, newest=newest or "none")


async def _apply(
    connection: asyncpg.Connection, schema: str, migration: Migration, timeouts: LockTimeouts
) -> None:
    """Applies it in a transaction, repeated until it gets its table locks."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + timeouts.total_seconds
    while True:
        try:
            async with connection.transaction():
                await connection.execute(
                    # LOCAL ends with the transaction.
                    f"SET LOCAL lock_timeout = '{round(timeouts.lock_seconds * 1000)}ms'"
                )
                await connection.execute(migration.sql)
                await connection.execute(
                    "INSERT INTO migrations (name, compatible_from) VALUES ($1, $2)",
                    migration.name,
                    migration.compatible_from,
                )
        except asyncpg.LockNotAvailableError as error:
            if loop.time() > ends_at:
                seconds = round(timeouts.total_seconds)
                raise MigrationBlocked(schema=schema, migration=migration.name, seconds=seconds) from error
            log.info(
                "migration repeated", schema=schema, migration=migration.name, why="its tables are locked"
            )
            await asyncio.sleep(timeouts.pause_seconds)
        else:
            log.info("migrated", schema=schema, migration=migration.name)
            return
