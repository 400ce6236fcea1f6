"""Restores a backup into an empty installation. All of the backup is checked before anything is changed.

The schemas are made by the migrations that the backup names; the next start of the services applies the later
ones. Streams are not in a backup: the scheduler dispatches what has no recorded outcome (decision 0067).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import asyncpg
import msgspec

from services.backup.errors import (
    BackupTooNew,
    BackupUnreadable,
    NoBackup,
    NotEmpty,
    SchedulerRunning,
    SchemaDiffers,
)
from services.backup.manifest import LAYOUT, MANIFEST, Manifest, Part, Schema, Table
from services.backup.objects import in_threads, listed_objects, read_objects, read_part
from services.backup.settings import MIGRATIONS, OBJECT_STORE, BackupSettings
from services.backup.tables import (
    QUERIES,
    connect,
    continue_numbers,
    quoted,
    read_tables,
    unguarded,
    write_rows,
)
from services.common.errors import ObjectStoreUnavailable
from services.common.migrations import migrate, read_migrations
from services.common.objects.obstore_objects import ObstoreObjects, is_missing
from services.common.process import release

# Services write these before anybody has ordered anything.
_OF_EVERY_START = frozenset(
    {
        *("access_version", "leadership", "leases", "limits", "pool_demands", "request_counts"),
    }
)


async def restore(settings: BackupSettings, place: str) -> Manifest:
    """Adds the rows and objects of the backup in the folder `place`."""
    backup = ObstoreObjects(place, "The backup")
    manifest = await _read_manifest(backup, place)
    for schema in manifest.schemas:
        _check_release(schema, manifest.release)
    await _check_parts(backup, place, manifest)
    target = ObstoreObjects(settings.object_store, OBJECT_STORE)
    connections = {schema: await connect(settings.dsn(schema), schema) for schema in MIGRATIONS}
    try:
        if not await connections["scheduler"].fetchval(QUERIES["lock_leadership"].statement):
            raise SchedulerRunning
        # Before the tables of one that is in use are migrated.
        for name, connection in connections.items():
            await _check_empty(connection, name)
        if await asyncio.to_thread(lambda: next(iter(target.keys("")), None)) is not None:
            raise NotEmpty(what=f"the object store {settings.object_store} holds objects")
        for schema in manifest.schemas:
            await migrate(
                settings.dsn(schema.name), schema.name, MIGRATIONS[schema.name], only=schema.migrations
            )
            await _check_columns(connections[schema.name], schema)
        await _load(_Restored(backup, place, manifest), connections, target)
    finally:
        for connection in connections.values():
            connection.terminate()
    return manifest


@dataclass(frozen=True, slots=True)
class _Restored:
    """A backup that was checked, and its place."""

    objects: ObstoreObjects
    place: str
    manifest: Manifest

    async def parts(self, table: Table) -> AsyncIterator[bytes]:
        for part in table.parts:
            yield await read_part(self.objects, self.place, part)


async def _read_manifest(backup: ObstoreObjects, place: str) -> Manifest:
    try:
        content = await asyncio.to_thread(backup.get, MANIFEST)
    except ObjectStoreUnavailable as error:
        if is_missing(error):
            raise NoBackup(place=place) from error
        raise
    try:
        layout = msgspec.json.decode(content, type=dict[str, msgspec.Raw]).get("layout")
        if layout is not None and int(bytes(layout)) > LAYOUT:
            raise BackupUnreadable(place=place, problem="a newer release wrote it, in another layout")
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BackupUnreadable(place=place, problem=f"{MANIFEST} cannot be read") from error
    if sorted(schema.name for schema in manifest.schemas) != sorted(MIGRATIONS):
        raise BackupUnreadable(place=place, problem=f"{MANIFEST} names other schemas")
    return manifest


def _check_release(schema: Schema, made_by: str) -> None:
    """A migration that this release has not cannot be applied here, so its tables cannot be made."""
    known = {each.name for each in read_migrations(MIGRATIONS[schema.name])}
    for migration in schema.migrations:
        if migration not in known:
            raise BackupTooNew(release=made_by, migration=migration, schema=schema.name)


async def _check_parts(backup: ObstoreObjects, place: str, manifest: Manifest) -> None:
    """Reads everything once: half a backup is never restored."""
    for part in manifest.parts():
        await read_part(backup, place, part)
    objects = 0
    async for some in listed_objects(backup, place, manifest.object_lists):
        await read_objects(backup, place, some)
        objects += len(some)
    if objects != manifest.objects:
        raise BackupUnreadable(place=place, problem=f"it lists {objects} of {manifest.objects} objects")


async def _check_empty(connection: asyncpg.Connection, schema: str) -> None:
    for table in sorted((await read_tables(connection)).keys() - _OF_EVERY_START):
        if await connection.fetchval(f"SELECT true FROM {quoted(table)} LIMIT 1"):  # noqa: S608  # a name of the catalogue, quoted
            raise NotEmpty(what=f"{schema}.{table} has rows")


async def _check_columns(connection: asyncpg.Connection, schema: Schema) -> None:
    tables = await read_tables(connection)
    for table in schema.tables:
        if table.name not in tables or sorted(tables[table.name]) != sorted(table.columns):
            raise SchemaDiffers(table=f"{schema.name}.{table.name}", release=release())


async def _load(
    restored: _Restored, connections: Mapping[str, asyncpg.Connection], target: ObstoreObjects
) -> None:
    """Commits the rows when all objects are stored; what fails leaves the installation empty."""
    first, second = connections["scheduler"], connections["results"]
    written: set[str] = set()
    try:
        async with first.transaction(), second.transaction():
            for schema in restored.manifest.schemas:
                await _load_schema(restored, schema, connections[schema.name])
            async for some in listed_objects(
                restored.objects, restored.place, restored.manifest.object_lists
            ):
                written.update(each.key for each in some)
                await _load_objects(restored, some, target)
    except BaseException:
        with suppress(ObjectStoreUnavailable):
            await in_threads([lambda: target.delete([key for key in target.keys("") if key in written])])
        raise


async def _load_schema(restored: _Restored, schema: Schema, connection: asyncpg.Connection) -> None:
    async with unguarded(connection):
        for table in schema.tables:
            await connection.execute(f"DELETE FROM {quoted(table.name)}")  # noqa: S608  # a name of the catalogue, quoted
            rows = await write_rows(connection, table.name, table.columns, restored.parts(table))
            if rows != table.rows:
                problem = f"{schema.name}.{table.name} has {rows} of {table.rows} rows"
                raise BackupUnreadable(place=restored.place, problem=problem)
    await continue_numbers(connection)


async def _load_objects(restored: _Restored, some: Sequence[Part], target: ObstoreObjects) -> None:
    contents = await read_objects(restored.objects, restored.place, some)
    pairs = zip(some, contents, strict=True)
    await in_threads(partial(target.put, part.key, [content]) for part, content in pairs)
