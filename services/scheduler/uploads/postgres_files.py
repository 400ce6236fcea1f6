"""Files in Postgres: their facts and faults, and the contents that they share with data sets."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.uploads.checking.faults import DatasetFault, FaultKind
from services.scheduler.uploads.errors import FileInUse, FileInUseByRun, FileNotFound
from services.scheduler.uploads.postgres_datasets import content_from_row, content_values, request_of
from services.scheduler.uploads.stored_file import (
    FileFaults,
    FileId,
    FileList,
    FilePage,
    FilePurpose,
    StoredFile,
)

_AFTER_ALL = (datetime(9999, 1, 1, tzinfo=UTC), "")
_BEFORE_ALL = (datetime(1, 1, 1, tzinfo=UTC), "")


class _RepeatedRequest(Exception):
    """Rolls the transaction back: the request id was used before."""


class PostgresFiles:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def register_prefixes(self, prefixes: Sequence[str]) -> None:
        rows = [(prefix,) for prefix in prefixes]
        await self._session.run(lambda transaction: transaction.executemany("add_unreferenced_prefix", rows))

    async def add(self, file: StoredFile, request_id: str) -> StoredFile:
        try:
            return await self._session.run(lambda transaction: add_file_in(transaction, file, request_id))
        except _RepeatedRequest:
            earlier = await self.find_by_request(request_id, file.user)
            if earlier is None:
                raise FileNotFound(file_id=file.file_id) from None
            return earlier

    async def find_by_request(self, request_id: str, user: str) -> StoredFile | None:
        request = request_of(user, request_id)
        row = await self._session.fetchrow("find_file_of_request", request)
        return file_from_row(row) if row else None

    async def get(self, file_id: FileId) -> StoredFile:
        row = await self._session.fetchrow("get_file", file_id)
        if row is None:
            raise FileNotFound(file_id=file_id)
        return file_from_row(row)

    async def page(self, wanted: FileList) -> FilePage:
        query = "list_oldest_files" if wanted.is_ascending else "list_files"
        start = _BEFORE_ALL if wanted.is_ascending else _AFTER_ALL
        if wanted.after:
            start = ((await self.get(wanted.after)).created_at, wanted.after)
        # One extra row tells whether there are more.
        values = (wanted.purpose, *start, wanted.size + 1)
        rows = await self._session.fetch(query, *values)
        return FilePage([file_from_row(row) for row in rows[: wanted.size]], len(rows) > wanted.size)

    async def delete(self, file_id: FileId) -> Sequence[str]:
        return await self._session.run(lambda transaction: _delete(transaction, file_id))

    async def expired(self, now: datetime, most: int) -> Sequence[FileId]:
        rows = await self._session.fetch("expired_files", now, most)
        return [FileId(row["file_id"]) for row in rows]


async def add_file_in(transaction: PostgresTransaction, file: StoredFile, request_id: str = "") -> StoredFile:
    """Adds a file within a transaction of the caller. Its prefixes are then referenced."""
    content = file.content
    if content:
        await transaction.execute("store_content", *content_values(content))
    request = request_of(file.user, request_id) if request_id else None
    await transaction.execute("add_file", *_file_values(file), request)
    row = await transaction.fetchrow("get_file", file.file_id)
    if row is None:
        raise _RepeatedRequest
    stored = file_from_row(row)
    kept = [stored.prefix, *([stored.content.prefix] if stored.content else [])]
    for prefix in kept:
        await transaction.execute("delete_unreferenced_prefix", prefix)
    return stored


async def _delete(transaction: PostgresTransaction, file_id: FileId) -> Sequence[str]:
    held = await transaction.fetchrow("lock_file_to_delete", file_id)
    if held is None:
        raise FileNotFound(file_id=file_id)
    batch_id = await transaction.fetchval("batch_using_file", file_id)
    if batch_id is not None:
        raise FileInUse(file_id=file_id, batch_id=batch_id)
    run_id = await transaction.fetchval("run_using_dataset", file_id)
    if run_id is not None:
        raise FileInUseByRun(file_id=file_id, run_id=str(run_id))
    unreferenced = [held["prefix"]]
    key = (held["digest"], held["format"])
    content = await transaction.fetchval("lock_content", *key)
    await transaction.execute("delete_file", file_id)
    if content and await transaction.fetchval("delete_unused_content", *key):
        unreferenced.append(content)
    for prefix in unreferenced:
        await transaction.execute("add_unreferenced_prefix", prefix)
    return unreferenced


def file_from_row(row: asyncpg.Record) -> StoredFile:
    return StoredFile(
        file_id=FileId(row["file_id"]),
        name=row["name"],
        user=row["username"],
        purpose=FilePurpose(row["purpose"]),
        size_bytes=row["file_bytes"],
        created_at=row["created_at"],
        prefix=row["file_prefix"],
        expires_at=row["expires_at"],
        content=content_from_row(row) if row["digest"] else None,
        faults=FileFaults(_faults_from_json(row["faults"]), row["fault_count"]),
    )


def _file_values(file: StoredFile) -> tuple[object, ...]:
    content = file.content
    return (
        file.file_id,
        file.name,
        file.user,
        file.purpose,
        file.size_bytes,
        file.created_at,
        file.expires_at,
        file.prefix,
        content.digest if content else None,
        content.format if content else None,
        json.dumps([asdict(fault) for fault in file.faults.first]),
        file.faults.count,
    )


def _faults_from_json(text: str) -> tuple[DatasetFault, ...]:
    stored: list[dict[str, Any]] = json.loads(text)
    return tuple(DatasetFault(**{**fault, "kind": FaultKind(fault["kind"])}) for fault in stored)
