"""Takes a backup: the rows of both schemas as of one moment, and the objects that they refer to.

Postgres gives both connections one snapshot. Objects are stored before the rows that refer to them, and
copied after the snapshot; while the backup's lock is held, schedulers delete none. The manifest comes last.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg
import msgspec

from services.backup.errors import BackupBroken, BackupRunning, DatabasesApart, PlaceInsideStore
from services.backup.manifest import (
    LAYOUT,
    MANIFEST,
    Manifest,
    Part,
    Schema,
    Table,
    is_name,
    name_of,
    part_of,
)
from services.backup.objects import copied_objects, object_list
from services.backup.settings import MIGRATIONS, OBJECT_STORE, BackupSettings
from services.backup.tables import QUERIES, connect, fetch, read_rows, read_tables
from services.common.process import release
from services.scheduler.uploads.storage.obstore_objects import ObstoreObjects

_PLACE = "The place of backups"
# Schedulers hold the lock for the time of one statement.
_LOCK_TRIES = 50
_LOCK_PAUSE_SECONDS = 0.1
_LISTED_AT_A_TIME = 10_000


@dataclass(frozen=True, slots=True)
class Saved:
    """`place` is the address of the backup."""

    place: str
    manifest: Manifest


@dataclass(slots=True)
class _Copied:
    """What was copied of the objects so far, and the parts with their list."""

    lists: list[Part] = field(default_factory=list)
    objects: int = 0
    size_bytes: int = 0


async def save(settings: BackupSettings, to: str, keep: int) -> Saved:
    """Stores a backup in a new folder of `to`, and deletes all but the `keep` newest; 0 keeps all."""
    store = settings.object_store.rstrip("/")
    if f"{to.rstrip('/')}/".startswith(f"{store}/"):
        raise PlaceInsideStore(place=to, store=store)
    source = ObstoreObjects(store, OBJECT_STORE)
    connections = {schema: await connect(settings.dsn(schema), schema) for schema in MIGRATIONS}
    try:
        await _lock(connections["scheduler"])
        async with _one_snapshot(connections) as taken_at:
            place = f"{to.rstrip('/')}/{name_of(taken_at)}"
            backup = ObstoreObjects(place, _PLACE)
            schemas = [await _save_schema(name, each, backup) for name, each in connections.items()]
        copied = await _copy(source, backup, connections["scheduler"])
        manifest = Manifest(
            layout=LAYOUT,
            release=release(),
            taken_at=taken_at,
            schemas=schemas,
            object_lists=copied.lists,
            objects=copied.objects,
            object_bytes=copied.size_bytes,
        )
        await asyncio.to_thread(backup.put, MANIFEST, [msgspec.json.encode(manifest)])
        await asyncio.to_thread(_delete_older, to, keep)
    finally:
        for connection in connections.values():
            connection.terminate()
    return Saved(place, manifest)


async def _lock(connection: asyncpg.Connection) -> None:
    """Held until the connection ends. Raises `BackupRunning`."""
    for _ in range(_LOCK_TRIES):
        if await connection.fetchval(QUERIES["lock_backup"].statement):
            return
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)
    raise BackupRunning


@asynccontextmanager
async def _one_snapshot(connections: dict[str, asyncpg.Connection]) -> AsyncIterator[datetime]:
    """Both connections read one moment, until this ends."""
    first, second = connections["scheduler"], connections["results"]
    async with (
        first.transaction(isolation="repeatable_read", readonly=True),
        second.transaction(isolation="repeatable_read", readonly=True),
    ):
        (row,) = await fetch(first, "export_snapshot")
        try:
            await second.execute(f"SET TRANSACTION SNAPSHOT '{row['snapshot']}'")
        except (asyncpg.InvalidParameterValueError, asyncpg.UndefinedObjectError) as error:
            raise DatabasesApart from error
        yield row["taken_at"]


async def _save_schema(name: str, connection: asyncpg.Connection, backup: ObstoreObjects) -> Schema:
    migrations = {row["name"]: row["compatible_from"] for row in await fetch(connection, "list_migrations")}
    tables = []
    for table, columns in (await read_tables(connection)).items():
        parts: list[Part] = []

        async def store(
            content: bytes, folder: str = f"tables/{name}/{table}", stored: list[Part] = parts
        ) -> None:
            stored.append(part_of(f"{folder}/{len(stored):06}", content))
            await asyncio.to_thread(backup.put, stored[-1].key, [content])

        rows = await read_rows(connection, table, columns, store)
        tables.append(Table(table, columns, rows, parts))
    return Schema(name, migrations, tables)


async def _copy(source: ObstoreObjects, backup: ObstoreObjects, lock: asyncpg.Connection) -> _Copied:
    """Raises `BackupBroken` if the lock was lost."""

    async def check_lock() -> None:
        try:
            await lock.execute("SELECT")
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError) as error:
            raise BackupBroken from error

    async def store_list() -> None:
        part = part_of(f"object-lists/{len(copied.lists):06}", object_list(listed))
        await asyncio.to_thread(backup.put, part.key, [object_list(listed)])
        copied.lists.append(part)
        listed.clear()

    copied, listed = _Copied(), list[Part]()
    async for part in copied_objects(source, backup, check_lock):
        listed.append(part)
        copied.objects, copied.size_bytes = copied.objects + 1, copied.size_bytes + part.size
        if len(listed) == _LISTED_AT_A_TIME:
            await store_list()
    await store_list()
    await check_lock()
    return copied


def _delete_older(to: str, keep: int) -> None:
    """Deletes whole backups only: one without a manifest may be one that is being written."""
    if not keep:
        return
    folders = sorted(folder.rstrip("/") for folder in ObstoreObjects(to, _PLACE).folders())
    backups = [ObstoreObjects(f"{to.rstrip('/')}/{name}", _PLACE) for name in folders if is_name(name)]
    whole = [each for each in backups if each.has(MANIFEST)]
    for old in whole[:-keep]:
        # First, so that what is left of it after a failure is no backup.
        old.delete([MANIFEST])
        old.delete(list(old.keys("")))
