"""Releases side by side on one schema: which code may use it, and what a migration waits for."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from services.common.errors import MigrationBlocked, SchemaTooNew, SchemaTooOld
from services.common.migrations import LockTimeouts, check_schema, migrate
from services.results import postgres as results
from services.scheduler import postgres as scheduler
from tests.fakes.thorough_cases import first_cases
from tests.harness.processes import bound, output_of
from tests.harness.servers import postgres_server

TABLE = "CREATE TABLE cars (wheels integer NOT NULL DEFAULT 4);"
EXPAND = "-- compatible-from: 0001_cars.sql\nALTER TABLE cars ADD COLUMN doors integer NOT NULL DEFAULT 5;"
CONTRACT = "-- compatible-from: 0002_doors.sql\nALTER TABLE cars DROP COLUMN wheels;"
# Services whose schema it is, with the folder of its migrations.
SCHEMAS = {scheduler.SCHEMA: scheduler.MIGRATIONS, results.SCHEMA: results.MIGRATIONS}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[str]:
    async with postgres_server() as running:
        yield running.address


@pytest.fixture
async def dsn(server: str) -> str:
    """An empty database."""
    name = f"test_{uuid4().hex}"
    connection = await asyncpg.connect(server)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return f"{server.rpartition('/')[0]}/{name}"


def release(folder: Path, *migrations: str) -> Path:
    """The migrations that the code of a release has."""
    folder.mkdir()
    names = ("0001_cars.sql", "0002_doors.sql", "0003_no_wheels.sql")
    for name, sql in zip(names, migrations, strict=False):
        (folder / name).write_text(sql)
    return folder


@dataclass(frozen=True)
class Release:
    """What code of a release does with its table: it writes a car and reads all of them."""

    migrations: tuple[str, ...]
    write: str
    read: str


# The second release leaves the wheels alone, so the third may drop them: an expansion, then a contraction.
RELEASES = {
    1: Release((TABLE,), "INSERT INTO cars (wheels) VALUES (3)", "SELECT wheels FROM cars"),
    2: Release((TABLE, EXPAND), "INSERT INTO cars (doors) VALUES (2)", "SELECT doors FROM cars"),
    3: Release((TABLE, EXPAND, CONTRACT), "INSERT INTO cars (doors) VALUES (2)", "SELECT doors FROM cars"),
}


async def starts(dsn: str, number: int, folder: Path) -> list[int]:
    """The cars that code of a release reads, once it has migrated and written one."""
    await migrate(dsn, "cars", release(folder / str(uuid4()), *RELEASES[number].migrations))
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "cars"})
    try:
        await connection.execute(RELEASES[number].write)
        return [row[0] for row in await connection.fetch(RELEASES[number].read)]
    finally:
        await connection.close()


# The schema as one release left it, the release that starts on it, and the cars that this one finds.
MEETINGS = [
    (1, 1, [3, 3]),
    (1, 2, [5, 2]),
    (1, 3, [5, 2]),
    (2, 1, [4, 3]),
    (2, 2, [2, 2]),
    (2, 3, [2, 2]),
    (3, 2, [2, 2]),
    (3, 3, [2, 2]),
]


@pytest.mark.parametrize(("schema", "code", "cars"), MEETINGS)
async def test_release_works_on_the_schema_of_one_that_allows_it(
    dsn: str, tmp_path: Path, schema: int, code: int, cars: list[int]
) -> None:
    await starts(dsn, schema, tmp_path)
    assert await starts(dsn, code, tmp_path) == cars
    # A replica of the other release, which restarts meanwhile.
    if max(schema, code) < 3 or min(schema, code) > 1:
        assert len(await starts(dsn, schema, tmp_path)) == 3


async def test_contracted_schema_refuses_code_from_before_the_expansion_and_stays_as_it_is(
    dsn: str, tmp_path: Path
) -> None:
    await starts(dsn, 3, tmp_path)
    oldest = release(tmp_path / "oldest", *RELEASES[1].migrations)
    with pytest.raises(SchemaTooNew, match=r"needs code with migration 0002_doors\.sql"):
        await migrate(dsn, "cars", oldest)
    with pytest.raises(SchemaTooNew):
        await check_schema(dsn, "cars", oldest)
    assert await starts(dsn, 3, tmp_path) == [2, 2]


async def test_older_schema_is_refused_to_newer_code_that_may_not_migrate(dsn: str, tmp_path: Path) -> None:
    await starts(dsn, 1, tmp_path)
    newer = release(tmp_path / "newer", *RELEASES[2].migrations)
    with pytest.raises(SchemaTooOld, match=r"0002_doors\.sql"):
        await check_schema(dsn, "cars", newer)
    await migrate(dsn, "cars", newer)
    await check_schema(dsn, "cars", newer)
    await check_schema(dsn, "cars", release(tmp_path / "older", *RELEASES[1].migrations))


async def test_migration_without_a_mark_is_compatible_with_no_older_code(dsn: str, tmp_path: Path) -> None:
    unmarked = EXPAND.partition("\n")[2]
    await migrate(dsn, "cars", release(tmp_path / "new", TABLE, unmarked))

    with pytest.raises(SchemaTooNew, match=r"0002_doors\.sql"):
        await migrate(dsn, "cars", release(tmp_path / "old", TABLE))


async def test_migration_that_gets_no_lock_gives_up_and_is_repeated(dsn: str, tmp_path: Path) -> None:
    await migrate(dsn, "cars", release(tmp_path / "old", TABLE))
    new = release(tmp_path / "new", TABLE, EXPAND)
    reader, other = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        transaction = reader.transaction()
        await transaction.start()
        await reader.execute("SELECT * FROM cars.cars")
        with pytest.raises(MigrationBlocked, match=r"0002_doors\.sql of schema cars"):
            await migrate(dsn, "cars", new, timeouts=LockTimeouts(0.05, 0.01, 0.2))

        migrating = asyncio.create_task(migrate(dsn, "cars", new, timeouts=LockTimeouts(0.05, 0.01, 60)))
        # A query that comes after the migration waits at most for one of its tries.
        for _ in range(5):
            await asyncio.wait_for(other.fetch("SELECT * FROM cars.cars"), 10)
        assert not migrating.done()
        await transaction.rollback()
        await asyncio.wait_for(migrating, 30)
        assert await other.fetchval("SELECT count(*) FROM cars.migrations") == 2
    finally:
        await reader.close()
        await other.close()


async def test_replicas_that_start_together_migrate_once(dsn: str, tmp_path: Path) -> None:
    new = release(tmp_path / "new", TABLE, EXPAND)
    await asyncio.gather(*(migrate(dsn, "cars", new) for _ in range(4)))


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_services_of_today_start_on_the_schema_of_tomorrow_until_it_is_contracted(
    dsn: str, tmp_path: Path, schema: str
) -> None:
    folder = shutil.copytree(SCHEMAS[schema], tmp_path / schema)
    newest = max(file.name for file in folder.glob("*.sql"))
    (folder / "9998_tomorrow.sql").write_text(f"-- compatible-from: {newest}\nCREATE TABLE tomorrow (n int);")
    await migrate(dsn, schema, folder)

    await migrate(dsn, schema, SCHEMAS[schema])
    await check_schema(dsn, schema, SCHEMAS[schema])

    contraction = "-- compatible-from: 9998_tomorrow.sql\nALTER TABLE tomorrow DROP COLUMN n;"
    (folder / "9999_contracted.sql").write_text(contraction)
    await migrate(dsn, schema, folder)
    with pytest.raises(SchemaTooNew, match=r"9998_tomorrow\.sql"):
        await check_schema(dsn, schema, SCHEMAS[schema])


@first_cases(1, "schema", SCHEMAS)
async def test_command_migrates_for_a_service_whose_role_may_not(dsn: str, schema: str) -> None:
    parts = urlsplit(dsn)
    owner = await asyncpg.connect(dsn)
    await owner.execute(
        f"CREATE ROLE serving_{schema} LOGIN PASSWORD 'secret';"
        f"GRANT CONNECT ON DATABASE {parts.path.strip('/')} TO serving_{schema}"
    )
    serving = f"postgresql://serving_{schema}:secret@{parts.netloc.rpartition('@')[2]}{parts.path}"
    with pytest.raises(SchemaTooOld, match=rf"python -m services\.{schema} migrate"):
        await check_schema(serving, schema, SCHEMAS[schema])

    environment = {"PROCTOR_POSTGRES_DSN": dsn}
    command = bound(sys.executable, "-m", f"services.{schema}", "migrate")
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    assert await asyncio.wait_for(process.wait(), 60) == 0

    await owner.execute(
        f'GRANT USAGE ON SCHEMA "{schema}" TO serving_{schema};'
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO serving_{schema}'
    )
    await owner.close()
    await check_schema(serving, schema, SCHEMAS[schema])


async def test_failed_command_says_why_and_ends_with_one() -> None:
    environment = {"PROCTOR_POSTGRES_DSN": "postgresql://nobody:SECRET@127.0.0.1:1/none"}
    environment["PROCTOR_LOG_LEVEL"] = "LOUD"
    command = bound(sys.executable, "-m", "services.results", "migrate")
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await output_of(process, 60)
    assert process.returncode == 1
    assert b"PROCTOR_LOG_LEVEL is LOUD" in output
    assert b"SECRET" not in output
