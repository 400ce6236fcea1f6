"""Takes a backup: the rows of both schemas as of one moment, and the objects that they refer to.

Postgres gives both connections one snapshot. Objects are stored before the rows that refer to them, and
copied after the snapshot; while the backup's lock is held, schedulers delete none. The manifest comes last.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
from services.backup.objects import copied_objects, in_threads, object_list
from services.backup.settings import MIGRATIONS, OBJECT_STORE, BackupSettings
from services.backup.tables import QUERIES, connect, fetch, read_rows, read_tables
from services.common.errors import ObjectStoreUnavailable
from services.common.objects.obstore_objects import ObstoreObjects
from services.common.process import release
from services.scheduler.uploads.delete_uploads import delete_objects

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
    """Stores a backup in a new folder of `to`, and deletes all but the `keep` newest; 0 keeps all.

    Nothing is left of one that fails.
    """
    to, store = to.rstrip("/"), settings.object_store.rstrip("/")
    if f"{_resolved(to)}/".startswith(f"{_resolved(store)}/"):
        raise PlaceInsideStore(place=to, store=store)
    source, places = ObstoreObjects(store, OBJECT_STORE), ObstoreObjects(to, _PLACE)
    connections = {schema: await connect(settings.dsn(schema), schema) for schema in MIGRATIONS}
    try:
        await _lock(connections["scheduler"])
        async with AsyncExitStack() as stack:
            async with _one_snapshot(connections) as taken_at:
                name = name_of(taken_at)
                await stack.enter_async_context(_whole_or_nothing(places, name))
                backup = ObstoreObjects(f"{to}/{name}", _PLACE)
                schemas = [await _save_schema(schema, each, backup) for schema, each in connections.items()]
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
            await in_threads([partial(backup.put, MANIFEST, [msgspec.json.encode(manifest)])])
        await asyncio.to_thread(_delete_older, places, name, keep)
    finally:
        for connection in connections.values():
            connection.terminate()
    return Saved(f"{to}/{name}", manifest)


def _resolved(place: str) -> str:
    """Of a folder, where it lies, whatever links lead there."""
    parts = urlsplit(place)
    return Path(unquote(parts.path)).resolve().as_uri() if parts.scheme == "file" else place


@asynccontextmanager
async def _whole_or_nothing(places: ObstoreObjects, name: str) -> AsyncIterator[None]:
    """A place that is full stays so if each try leaves what it has stored."""
    try:
        yield
    except BaseException:
        with suppress(ObjectStoreUnavailable):
            await in_threads([partial(delete_objects, places, name)])
        raise


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
            await in_threads([partial(backup.put, stored[-1].key, [content])])

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
        content = object_list(listed)
        part = part_of(f"object-lists/{len(copied.lists):06}", content)
        await in_threads([partial(backup.put, part.key, [content])])
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


def _delete_older(places: ObstoreObjects, newest: str, keep: int) -> None:
    """With them goes what killed backups have left: this one holds the lock, so none is being written."""
    if not keep:
        return
    names = sorted(filter(is_name, (folder.rstrip("/") for folder in places.folders())))
    whole = [name for name in names if places.has(f"{name}/{MANIFEST}")]
    for old in whole[:-keep]:
        # First, so that what is left of it after a failure is no backup.
        places.delete([f"{old}/{MANIFEST}"])
        delete_objects(places, old)
    for cut_off in set(names) - set(whole):
        if cut_off < newest:
            delete_objects(places, cut_off)
