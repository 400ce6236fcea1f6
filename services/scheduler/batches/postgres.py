"""Batches in Postgres, with their runs."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import asyncpg

from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.batches.stored_batch import (
    Batch,
    BatchError,
    BatchFiles,
    BatchId,
    BatchNotFound,
    BatchOrder,
)
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.runs.lifecycle.postgres import PostgresRuns, lock_user, refuse_used_by_run
from services.scheduler.runs.lifecycle.postgres_rows import run_from_row
from services.scheduler.uploads.errors import FileInUse
from services.scheduler.uploads.postgres import add_file_in, request_of
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.quotas.storage_use import MIN_FILE
from services.scheduler.uploads.stored_file import FileId, StoredFile

# Newer than any batch. A value and not null, so that the first page is read by the same index.
_BEFORE_ALL = (datetime(9999, 1, 1, tzinfo=UTC), "")


class PostgresBatches:
    """Batches with their runs, as users make and see them and as the leader ends them."""

    def __init__(self, session: PostgresSession, runs: PostgresRuns, storage: PostgresStorage) -> None:
        self._session = session
        self._runs = runs
        self._storage = storage

    async def add(self, batch: Batch, request_id: str) -> Batch:
        """Stores the batch and its run, both or none; or gives that of the user's first call with this id.

        Raises `BatchRequestTaken` where that ordered something else; `QueueFull`, `PriorityNotAllowed` or
        `StorageQuotaExceeded`, by the limits of this moment; `DatasetNotFound` where the file has gone.
        """
        request = request_of(batch.user, request_id) if request_id else None

        async def add(transaction: PostgresTransaction) -> Batch:
            await lock_user(transaction, batch.user)
            ordered = await transaction.fetchval("find_submitted_batch", request_id=request)
            if ordered is None:
                if batch.run is not None:
                    # Its files are written in the end, whatever their size, so there must be room now.
                    await self._storage.check_room(transaction, batch.user, batch.project_id, MIN_FILE)
                    await self._runs.add_in(transaction, batch.run, "")
                await transaction.execute("add_batch", **_batch_values(batch), request_id=request)
                author = Author(batch.user, batch.created_at)
                made = Change(
                    author, Action.CREATE, ObjectKind.BATCH, batch.batch_id, project_id=batch.project_id
                )
                await record_change(transaction, made)
            # Read again: another call may have stored the batch under this id.
            return await _found(transaction, BatchId(ordered or batch.batch_id))

        return await self._session.run(add)

    async def ordered(self, request_id: str, user: str) -> Batch | None:
        """The batch that an earlier call of this user with this id has stored."""
        request = request_of(user, request_id)

        async def ordered(transaction: PostgresTransaction) -> Batch | None:
            batch_id = await transaction.fetchval("find_submitted_batch", request_id=request)
            return await _found(transaction, BatchId(batch_id)) if batch_id else None

        return await self._session.run(ordered)

    async def get(self, batch_id: BatchId) -> Batch:
        """Raises `BatchNotFound`."""
        return _batch(batch_id, await self._session.fetchrow("read_batch", batch_id=batch_id))

    async def page(self, size: int, after: BatchId | None) -> Sequence[Batch]:
        """Newest first. Raises `BatchNotFound` where there is no batch to begin behind."""
        created_at, batch_id = ((await self.get(after)).created_at, after) if after else _BEFORE_ALL
        rows = await self._session.fetch(
            "list_batches", before_created_at=created_at, before_batch_id=batch_id, limit=size
        )
        return [batch_from_row(row) for row in rows]

    async def to_finalize(self, others: Collection[BatchId], limit: int) -> Sequence[BatchId]:
        """Batches whose run is closed and whose files are not written yet, except `others`."""
        rows = await self._session.fetch("list_batches_to_finalize", left_out=list(others), limit=limit)
        return [BatchId(row["batch_id"]) for row in rows]

    async def finalize(
        self, token: FencingToken, batch_id: BatchId, written: BatchFiles, files: Sequence[StoredFile]
    ) -> bool:
        """Names the files, all or none; False where another has done so, or the batch has gone.

        Raises `LeadershipLost` once another leads.
        """

        async def finalize(transaction: PostgresTransaction) -> bool:
            found = await transaction.fetchval(
                "finalize_batch",
                batch_id=batch_id,
                finalized_at=written.finalized_at,
                output_file_id=written.output_file_id,
                error_file_id=written.error_file_id,
            )
            if found is None:
                return False
            for file in files:
                await add_file_in(transaction, file)
            return True

        return await run_as_leader(self._session, token, finalize)


async def refuse_used_file(transaction: PostgresTransaction, file_id: str) -> None:
    """Raises `FileInUse` until the batch over it has written its files, `FileInUseByRun` for other runs."""
    batch_id = await transaction.fetchval("find_batch_using_file", file_id=file_id)
    if batch_id is not None:
        raise FileInUse(file_id=file_id, batch_id=batch_id)
    await refuse_used_by_run(transaction, file_id)


async def _found(transaction: PostgresTransaction, batch_id: BatchId) -> Batch:
    return _batch(batch_id, await transaction.fetchrow("read_batch", batch_id=batch_id))


def _batch(batch_id: BatchId, row: asyncpg.Record | None) -> Batch:
    if row is None:
        raise BatchNotFound(batch_id=batch_id)
    return batch_from_row(row)


def batch_from_row(row: asyncpg.Record) -> Batch:
    order = BatchOrder(
        input_file_id=FileId(row["input_file_id"]),
        endpoint=row["endpoint"],
        completion_window=row["completion_window"],
        metadata=json.loads(row["metadata"]),
        output_expires_after_seconds=row["output_expires_after_seconds"],
    )
    return Batch(
        batch_id=BatchId(row["batch_id"]),
        user=row["batch_username"],
        project_id=row["batch_project_id"],
        order=order,
        created_at=row["batch_created_at"],
        total=row["batch_total"],
        run=run_from_row(row) if row["run_id"] else None,
        errors=tuple(BatchError(**error) for error in json.loads(row["errors"])),
        files=_files_from_row(row),
    )


def _files_from_row(row: asyncpg.Record) -> BatchFiles | None:
    if row["finalized_at"] is None:
        return None
    return BatchFiles(row["finalized_at"], row["output_file_id"], row["error_file_id"])


def _batch_values(batch: Batch) -> Mapping[str, object]:
    order = batch.order
    return {
        "batch_id": batch.batch_id,
        "username": batch.user,
        "input_file_id": order.input_file_id,
        "endpoint": order.endpoint,
        "completion_window": order.completion_window,
        "metadata": json.dumps(dict(order.metadata)),
        "created_at": batch.created_at,
        "total": batch.total,
        "run_id": batch.run.run_id if batch.run else None,
        "errors": json.dumps([asdict(error) for error in batch.errors]),
        "output_expires_after_seconds": order.output_expires_after_seconds,
        "project_id": batch.project_id,
    }
