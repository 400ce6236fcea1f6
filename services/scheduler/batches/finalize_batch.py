"""The end of a batch: what its run has recorded is written to files, a few batches at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import NoReturn
from uuid import UUID, uuid5

import orjson

from proctor.values.plain import with_line_feeds_only
from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.errors import RemoteError
from services.common.structured_logs import get_logger
from services.scheduler.batches.ports import BatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.stored_batch import (
    Batch,
    BatchFiles,
    BatchId,
    BatchNotFound,
    MissingLines,
    missing_lines,
)
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.uploads.dataset import DatasetContent, DatasetRow
from services.scheduler.uploads.delete_uploads import try_to_delete_objects
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.postgres import PostgresFiles
from services.scheduler.uploads.storage.store_parts import LoadRows, StoreBytes
from services.scheduler.uploads.stored_file import FileId, FilePurpose, StoredFile, bytes_prefix

log = get_logger()

# Each holds a part of a file in memory and a stream of results, beside the runs that go on.
AT_A_TIME = 2
# A batch whose run is closed waits this long at most before its files are begun.
_ROUND_SECONDS = 0.5
_FIRST_BACKOFF_SECONDS = 1.0
# An object store that is away is asked once a minute, and its return is noticed as soon.
_MAX_BACKOFF_SECONDS = 60.0
# A line has some 200 bytes, so a piece stays far below one part of the store.
_LINES_AT_A_TIME = 1000
_UNKNOWN_RUN = "RUN_NOT_FOUND"


class LinesDiffer(Exception):
    """The two files do not have a line for each of the input."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one file has."""

    size_bytes: int = 0
    lines: int = 0


def unrequested_lines(run_id: RunId, rows: Iterable[DatasetRow], missing: MissingLines) -> Iterator[bytes]:
    """Lines in the order of the rows, many in a piece; the same whenever they are written."""
    lines = _lines(run_id, rows, missing)
    while piece := b"".join(islice(lines, _LINES_AT_A_TIME)):
        yield piece


def _lines(run_id: RunId, rows: Iterable[DatasetRow], missing: MissingLines) -> Iterator[bytes]:
    error = {"code": missing.code, "message": missing.message}
    namespace = UUID(run_id)
    for row in rows:
        line = {
            # Derived and not random: a file that is written again has the same ids.
            "id": f"batch_req_{uuid5(namespace, str(row.doc_id)).hex}",
            "custom_id": row.row_id,
            "response": None,
            "error": error,
        }
        yield with_line_feeds_only(orjson.dumps(line)) + b"\n"


@dataclass(frozen=True, slots=True)
class FinalizeBatch:
    """`seconds`: how long one `finalize` may take; the sweep of unreferenced prefixes waits longer."""

    batches: PostgresBatches
    files: PostgresFiles
    lines: BatchLines
    objects: ObjectStore
    clock: Clock
    seconds: float

    async def finalize(
        self, token: FencingToken, batch_id: BatchId, new_file_id: Callable[[], FileId]
    ) -> bool:
        """False where there was nothing to do any more."""
        batch = await self.batches.get(batch_id)
        if batch.run is None or batch.files is not None:
            return False
        output, errors = new_file_id(), new_file_id()
        # Before the first byte: a crash leaves prefixes that the sweep of unreferenced objects finds.
        await self.files.register_prefixes((bytes_prefix(output), bytes_prefix(errors)))
        written: Sequence[StoredFile] | None = None
        try:
            async with asyncio.timeout(self.seconds):
                written = await self._write(batch, batch.run, output, errors)
        # Not `except`: a cancel, as when leadership is lost, leaves parts as well.
        finally:
            if written is None:
                await self._delete(output, errors)
        # Where this fails they may be named all the same; if not, their prefixes are swept as unreferenced.
        if await self._named(token, batch, written):
            return True
        await self._delete(output, errors)
        return False

    async def _named(self, token: FencingToken, batch: Batch, written: Sequence[StoredFile]) -> bool:
        """Name the written files in the batch, except the empty ones."""
        output, errors = (file.file_id if file.size_bytes else None for file in written)
        named = BatchFiles(self.clock.now(), output, errors)
        kept = [file for file in written if file.size_bytes]
        return await self.batches.finalize(token, batch.batch_id, named, kept)

    async def _write(
        self, batch: Batch, run: Run, output_id: FileId, errors_id: FileId
    ) -> Sequence[StoredFile]:
        """Both files, which have a line for each of the input. Raises `LinesDiffer`."""
        missing = missing_lines(run)
        output = await self._written(self.lines.output(run.run_id), output_id)
        errors = await self._written(self.lines.errors(run.run_id, missing), errors_id)
        # A run that failed before results knew its samples: none of its lines was requested.
        if not output.lines and not errors.lines:
            content = (await self.files.get(batch.order.input_file_id)).content
            if content:
                errors = await asyncio.to_thread(self._write_unrequested, run, content, missing, errors_id)
        if output.lines + errors.lines != batch.total:
            raise LinesDiffer(
                f"{output.lines} lines of output and {errors.lines} of errors for {batch.total} of input"
            )
        return (
            self._file(batch, output_id, "output", output.size_bytes),
            self._file(batch, errors_id, "error", errors.size_bytes),
        )

    async def _written(self, pieces: AsyncIterator[bytes], file_id: FileId) -> Written:
        """Nothing where results does not know the run."""
        parts, lines = StoreBytes(self.objects, bytes_prefix(file_id)), 0
        try:
            async for piece in pieces:
                lines += piece.count(b"\n")
                await asyncio.to_thread(parts.add, piece)
        except RemoteError as error:
            if error.reason != _UNKNOWN_RUN or parts.size:
                raise
            return Written()
        await asyncio.to_thread(parts.end)
        return Written(parts.size, lines)

    def _write_unrequested(
        self, run: Run, content: DatasetContent, missing: MissingLines, file_id: FileId
    ) -> Written:
        parts, lines = StoreBytes(self.objects, bytes_prefix(file_id)), 0
        rows = LoadRows(self.objects).rows_from(content, 0)
        for piece in unrequested_lines(run.run_id, rows, missing):
            lines += piece.count(b"\n")
            parts.add(piece)
        parts.end()
        return Written(parts.size, lines)

    def _file(self, batch: Batch, file_id: FileId, kind: str, size_bytes: int) -> StoredFile:
        now, lasts = self.clock.now(), batch.order.output_expires_after_seconds
        return StoredFile(
            file_id=file_id,
            name=f"{batch.batch_id}_{kind}.jsonl",
            user=batch.user,
            purpose=FilePurpose.BATCH_OUTPUT,
            size_bytes=size_bytes,
            created_at=now,
            prefix=bytes_prefix(file_id),
            expires_at=None if lasts is None else now + timedelta(seconds=lasts),
            project_id=batch.project_id,
        )

    async def _delete(self, *files: FileId) -> None:
        for file_id in files:
            await asyncio.to_thread(try_to_delete_objects, self.objects, bytes_prefix(file_id))


@dataclass(frozen=True, slots=True)
class _Backoff:
    """How long a batch waits whose files could not be written, and until when; each time twice as long."""

    seconds: float
    until: float


@dataclass
class _LedBatches:
    fencing_token: FencingToken
    group: asyncio.TaskGroup
    going: set[BatchId] = field(default_factory=set)
    backoffs: dict[BatchId, _Backoff] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeadBatches:
    """Begins a term; keeps nothing between terms."""

    batches: PostgresBatches
    finalize_batch: FinalizeBatch
    clock: Clock
    new_file_id: Callable[[], FileId]

    async def lead(self, token: FencingToken) -> NoReturn:
        """Leads until cancelled, or until another leads (`LeadershipLost`)."""
        async with asyncio.TaskGroup() as group:
            led = _LedBatches(token, group)
            while True:
                await self._begin(led)
                await asyncio.sleep(_ROUND_SECONDS)

    async def _begin(self, led: _LedBatches) -> None:
        room = AT_A_TIME - len(led.going)
        if not room:
            return
        now = self.clock.monotonic()
        others = led.going | {one for one, backoff in led.backoffs.items() if backoff.until > now}
        try:
            wanted = await self.batches.to_finalize(others, room)
        except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
            log.warning("batches not looked up", error=repr(error))
            return
        for batch_id in wanted:
            led.going.add(batch_id)
            led.group.create_task(self._finalize(led, batch_id), name=f"batch {batch_id}")

    async def _finalize(self, led: _LedBatches, batch_id: BatchId) -> None:
        try:
            if await self.finalize_batch.finalize(led.fencing_token, batch_id, self.new_file_id):
                log.info("batch files written", batch_id=batch_id)
            # Also where another had written them: nothing is left to wait for.
            led.backoffs.pop(batch_id, None)
        except LeadershipLost:
            raise
        except BatchNotFound:
            log.info("batch deleted before its files were written", batch_id=batch_id)
        except Exception as error:  # noqa: BLE001  # one batch's trouble is not the others'
            backoff = self._backoff_after(led.backoffs.get(batch_id))
            led.backoffs[batch_id] = backoff
            log.warning(
                "batch files not written",
                batch_id=batch_id,
                error=repr(error),
                again_in_seconds=backoff.seconds,
            )
        finally:
            led.going.discard(batch_id)

    def _backoff_after(self, last: _Backoff | None) -> _Backoff:
        seconds = min(last.seconds * 2, _MAX_BACKOFF_SECONDS) if last else _FIRST_BACKOFF_SECONDS
        return _Backoff(seconds, self.clock.monotonic() + seconds)
