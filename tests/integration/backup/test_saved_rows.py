"""Rows and objects of one database are restored into another one, by roles as services have them."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.names.project import FIRST_DECLARED
from services.backup.errors import BackupUnreadable, NotEmpty, PlaceInsideStore
from services.backup.manifest import MANIFEST
from services.backup.restore import restore
from services.backup.save import save
from services.backup.settings import BackupSettings
from services.common.errors import DomainError
from services.common.migrations import migrate
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.postgres import PostgresSession, connect_pool
from services.results import postgres as results
from services.scheduler import postgres as scheduler
from services.scheduler.audit.audit_record import Author
from services.scheduler.projects.postgres import PostgresProjects
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, choice_sample, new_id, plan_of, scored
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import ordinary_role, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

AUTHOR = Author("olga", datetime(2026, 11, 29, tzinfo=UTC))


@dataclass(frozen=True)
class Databases:
    """`used` has rows of a declared project; `settings` are those of a new database and store each time."""

    used: BackupSettings
    superuser: str
    folder: Path

    async def new(self) -> BackupSettings:
        name = f"new_{uuid4().hex}"
        connection = await asyncpg.connect(self.superuser)
        await connection.execute(f"CREATE DATABASE {name} OWNER ordinary")
        await connection.close()
        return settings_of(self.superuser, name, self.folder / name)


def settings_of(superuser: str, database: str, store: Path) -> BackupSettings:
    server = superuser.rpartition("@")[2].partition("/")[0]
    dsn = f"postgresql://ordinary:secret@{server}/{database}"
    return BackupSettings(scheduler_dsn=dsn, results_dsn=dsn, object_store=store.as_uri())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def databases(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Databases]:
    async with postgres_server() as server:
        await ordinary_role(server.address)
        folder = tmp_path_factory.mktemp("databases")
        made = Databases(settings_of(server.address, "", folder), server.address, folder)
        used = await made.new()
        await fill(used)
        yield replace(made, used=used)


async def fill(used: BackupSettings) -> None:
    await migrate(used.scheduler_dsn, scheduler.SCHEMA, scheduler.MIGRATIONS)
    await migrate(used.results_dsn, results.SCHEMA, results.MIGRATIONS)
    async with session_on(used.scheduler_dsn, scheduler.SCHEMA) as session:
        await PostgresProjects(session).add("closed", "", AUTHOR, uuid4())
    async with session_on(used.results_dsn, results.SCHEMA) as session:
        stores = postgres_stores(session)
        sample_set_id = new_id()
        await stores.sample_sets.stage(sample_set_id, [choice_sample(0, new_id())])
        kept = await stores.sample_sets.commit(sample_set_id, 1)
        plan = plan_of([1], [kept.sample_set_id])
        plan = replace(plan, facts=replace(plan.facts, project_id=FIRST_DECLARED + 1))
        opened = await stores.records.open(plan, 1)
        await stores.outcomes.record([scored(opened.plan.run_id, answered(0))])
    store = ObstoreObjects(used.object_store)
    for number in range(20):
        store.put(f"datasets/ds_{number}/rows", [b"%d" % number])


@asynccontextmanager
async def session_on(dsn: str, schema: str) -> AsyncIterator[PostgresSession]:
    queries = scheduler.QUERIES if schema == scheduler.SCHEMA else results.QUERIES
    async with await connect_pool(dsn, schema=schema, max_size=1) as pool:
        yield PostgresSession(pool, queries)


async def rows_of(settings: BackupSettings) -> dict[str, Sequence[str]]:
    """All rows of tables of both schemas as texts."""
    connection = await asyncpg.connect(settings.scheduler_dsn)
    await connection.execute("SET proctor.readable_projects = 'all'")
    tables = await connection.fetch(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
        " WHERE schemaname IN ('scheduler', 'results') AND tablename <> 'migrations' ORDER BY 1"
    )
    read: dict[str, Sequence[str]] = {}
    for table in tables:
        rows = await connection.fetch(f"SELECT t::text AS row FROM {table['name']} AS t ORDER BY 1")
        read[table["name"]] = [row["row"] for row in rows]
    await connection.close()
    return read


def objects_of(settings: BackupSettings) -> Sequence[str]:
    return sorted(ObstoreObjects(settings.object_store).keys(""))


async def test_rows_of_declared_projects_are_restored_behind_their_policies(
    databases: Databases, tmp_path: Path
) -> None:
    saved = await save(databases.used, tmp_path.as_uri(), 0)
    new = await databases.new()
    await restore(new, saved.place)
    rows = await rows_of(databases.used)
    assert rows["scheduler.projects"]
    assert rows["results.run_records"]
    assert await rows_of(new) == rows
    assert objects_of(new) == objects_of(databases.used)
    connection = await asyncpg.connect(new.scheduler_dsn)
    assert await connection.fetchval("SELECT count(*) FROM scheduler.projects") == 0
    await connection.close()
    async with session_on(new.scheduler_dsn, scheduler.SCHEMA) as session:
        next_project = await PostgresProjects(session).add("next", "", AUTHOR, uuid4())
        assert next_project.project_id == FIRST_DECLARED + 2


async def test_rows_are_equal_whatever_form_of_dates_and_numbers_a_database_has(
    databases: Databases, tmp_path: Path
) -> None:
    connection = await asyncpg.connect(databases.superuser)
    database = databases.used.scheduler_dsn.rpartition("/")[2]
    for setting in ("DateStyle = 'SQL, DMY'", "extra_float_digits = -5", "IntervalStyle = 'sql_standard'"):
        await connection.execute(f"ALTER DATABASE {database} SET {setting}")
    try:
        saved = await save(databases.used, tmp_path.as_uri(), 0)
    finally:
        await connection.execute(f"ALTER DATABASE {database} RESET ALL")
        await connection.close()
    new = await databases.new()
    await restore(new, saved.place)
    assert await rows_of(new) == await rows_of(databases.used)


async def test_an_installation_in_use_is_refused_before_anything_of_it_is_changed(
    databases: Databases, tmp_path: Path
) -> None:
    saved = await save(databases.used, tmp_path.as_uri(), 0)
    before = await rows_of(databases.used)
    other = await databases.new()
    connection = await asyncpg.connect(other.results_dsn)
    await connection.execute("CREATE SCHEMA results; CREATE TABLE results.older (name text)")
    await connection.execute("INSERT INTO results.older VALUES ('kept')")
    for settings in (databases.used, other):
        with pytest.raises(NotEmpty):
            await restore(settings, saved.place)
    assert await rows_of(databases.used) == before
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname IN ('scheduler', 'results')"
    assert await connection.fetchval(tables) == 1
    await connection.close()


async def test_a_restore_that_fails_leaves_a_store_that_the_next_one_takes(
    databases: Databases, tmp_path: Path
) -> None:
    saved = await save(databases.used, tmp_path.as_uri(), 0)
    new = await databases.new()
    store = Path(new.object_store.removeprefix("file://"))
    # A file where one of its folders belongs.
    (store / "datasets").mkdir(parents=True)
    await asyncio.to_thread(os.mkfifo, store / "datasets" / "ds_13")
    with pytest.raises(DomainError):
        await restore(new, saved.place)
    (store / "datasets" / "ds_13").unlink()
    assert objects_of(new) == []
    await restore(new, saved.place)
    assert objects_of(new) == objects_of(databases.used)


async def test_a_backup_that_fails_leaves_nothing(databases: Databases, tmp_path: Path) -> None:
    store = Path(databases.used.object_store.removeprefix("file://"))
    await asyncio.to_thread((store / "looped").symlink_to, store / "looped")
    try:
        with pytest.raises(DomainError):
            await save(databases.used, tmp_path.as_uri(), 0)
    finally:
        (store / "looped").unlink()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_a_backup_that_is_stopped_leaves_nothing(databases: Databases, tmp_path: Path) -> None:
    """It waits for a table, which a migration holds."""
    database = databases.used.scheduler_dsn.rpartition("/")[2]
    connection = await asyncpg.connect(f"{databases.superuser.rpartition('/')[0]}/{database}")
    async with connection.transaction():
        await connection.execute("LOCK TABLE results.run_records IN ACCESS EXCLUSIVE MODE")
        environment = {
            "PROCTOR_BACKUP_SCHEDULER_DSN": databases.used.scheduler_dsn,
            "PROCTOR_BACKUP_RESULTS_DSN": databases.used.results_dsn,
            "PROCTOR_BACKUP_OBJECT_STORE": databases.used.object_store,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "services.backup.program", "save", tmp_path.as_uri()),
            env={**os.environ, **environment},
            stdout=asyncio.subprocess.PIPE,
        )

        async def has_begun() -> bool:
            return any(path.is_file() for path in tmp_path.rglob("*"))

        await eventually(has_begun, "some rows are stored")
        process.send_signal(signal.SIGTERM)
        output, _ = await process.communicate()
    await connection.close()
    assert process.returncode == 1
    assert b"It was stopped" in output.splitlines()[-1]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_only_the_newest_backups_stay_and_nothing_of_killed_ones(
    databases: Databases, tmp_path: Path
) -> None:
    for name in ("2026-01-01T00-00-00Z", "2026-01-02T00-00-00Z", "2026-01-03T00-00-00Z", "notes"):
        (tmp_path / name / "tables").mkdir(parents=True)
        (tmp_path / name / "tables" / "part").touch()
        if name != "2026-01-02T00-00-00Z":
            (tmp_path / name / MANIFEST).touch()
    saved = await save(databases.used, tmp_path.as_uri(), 2)
    newest = saved.place.rpartition("/")[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-01-03T00-00-00Z", newest, "notes"]


async def test_a_place_inside_the_store_is_refused_by_any_path(databases: Databases, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(databases.used.object_store.removeprefix("file://"))
    with pytest.raises(PlaceInsideStore):
        await save(databases.used, f"{link.as_uri()}/backups", 0)


async def test_a_manifest_of_other_schemas_is_refused(databases: Databases, tmp_path: Path) -> None:
    saved = await save(databases.used, tmp_path.as_uri(), 0)
    manifest = Path(saved.place.removeprefix("file://")) / MANIFEST
    manifest.write_bytes(manifest.read_bytes().replace(b'"name":"results"', b'"name":"pg_catalog"'))
    with pytest.raises(BackupUnreadable):
        await restore(await databases.new(), saved.place)
