"""Copies objects between the installation's store and a backup, some at a time, and checks what is read."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

import msgspec
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from services.backup.errors import BackupUnreadable
from services.backup.manifest import Part, object_key, part_of
from services.common.errors import ObjectStoreUnavailable
from services.common.objects.obstore_objects import ObstoreObjects, is_missing, is_unfinished

# Objects have up to 8 MiB.
_AT_A_TIME = 8

T = TypeVar("T")


async def in_threads(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Waits for all, even if one fails or this is cancelled: none may store what is deleted for that."""
    tasks = [asyncio.create_task(asyncio.to_thread(call), name="call of a store") for call in calls]
    try:
        await asyncio.wait(tasks)
    finally:
        await asyncio.wait(tasks)
    return [task.result() for task in tasks]


async def copied_objects(
    source: ObstoreObjects, backup: ObstoreObjects, on_batch: Callable[[], Awaitable[None]]
) -> AsyncIterator[Part]:
    """Copies all objects into the backup. An upload that is given up meanwhile leaves out its own.

    `on_batch` is called between copies.
    """
    keys = (key for key in source.keys("") if not is_unfinished(key))
    while batch := await asyncio.to_thread(lambda: list(islice(keys, _AT_A_TIME))):
        copies = await in_threads(partial(_copy, source, backup, key) for key in batch)
        for copied in copies:
            if copied is not None:
                yield copied
        await on_batch()


def _copy(source: ObstoreObjects, backup: ObstoreObjects, key: str) -> Part | None:
    try:
        content = source.get(key)
    except ObjectStoreUnavailable as error:
        if is_missing(error):
            return None
        raise
    backup.put(object_key(key), [content])
    return part_of(key, content)


def object_list(objects: Iterable[Part]) -> bytes:
    """A part of the list of objects, which can be read alone."""
    return ZstdCompressor().compress(b"".join(msgspec.json.encode(each) + b"\n" for each in objects))


async def read_part(backup: ObstoreObjects, place: str, part: Part, key: str = "") -> bytes:
    """The bytes of a part, which the backup keeps under `key`. Raises `BackupUnreadable`."""
    where = key or part.key
    try:
        content = await asyncio.to_thread(backup.get, where)
    except ObjectStoreUnavailable as error:
        if is_missing(error):
            raise BackupUnreadable(place=place, problem=f"{where} is missing") from error
        raise
    if len(content) != part.size or hashlib.sha256(content).hexdigest() != part.sha256:
        raise BackupUnreadable(place=place, problem=f"{where} is not as it was written")
    return content


async def listed_objects(
    backup: ObstoreObjects, place: str, lists: Sequence[Part]
) -> AsyncIterator[Sequence[Part]]:
    """The objects of a backup, some at a time."""
    for part in lists:
        written = await read_part(backup, place, part)
        try:
            content = ZstdDecompressor().decompress(written)
            objects = msgspec.json.decode(b"[" + content.strip().replace(b"\n", b",") + b"]", type=list[Part])
        except (ZstdError, msgspec.MsgspecError) as error:
            raise BackupUnreadable(place=place, problem=f"{part.key} is no list of objects") from error
        for start in range(0, len(objects), _AT_A_TIME):
            yield objects[start : start + _AT_A_TIME]


async def read_objects(backup: ObstoreObjects, place: str, objects: Sequence[Part]) -> Sequence[bytes]:
    """Raises `BackupUnreadable`."""
    reads = (read_part(backup, place, each, object_key(each.key)) for each in objects)
    return await asyncio.gather(*reads)
