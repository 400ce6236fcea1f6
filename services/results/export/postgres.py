"""Rows of exports, prefetched in windows, and the points from which files of frozen runs are resumed."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg

from services.common.postgres import PostgresSession
from services.results.answers.postgres import key_columns
from services.results.export.exported_run import ResumableFile, ResumePoint, RowKind, RowQuery, RunChanged
from services.results.export.ports import RowChunk
from services.results.outcomes.outcome import OutcomeKey
from services.results.outcomes.postgres import after_key
from services.results.runs.run_plan import PlannedTask, RunRecord

_QUERIES = {
    RowKind.LINE: "export_lines",
    RowKind.COLUMNS: "export_columns",
    RowKind.BATCH_ANSWER: "export_batch_answers",
    RowKind.BATCH_ERROR: "export_batch_errors",
}
_CHOSEN = {RowKind.LINE: "export_chosen_lines", RowKind.COLUMNS: "export_chosen_columns"}
# One is read while the other is written.
READ_AHEAD = 2
# The first bytes come soon, then chunks are as large as they are cheap to hold.
FIRST_SAMPLES = 64
MAX_SAMPLES = 8192
# A window of short texts says little about the next one.
MAX_GROWTH = 8
CHUNK_BYTES = 1024 * 1024
# Where texts are suddenly much longer than those before.
MAX_CHUNK_BYTES = 4 * CHUNK_BYTES
# Names and numbers of a line, which stand beside its texts.
BYTES_OF_FIELDS = 500


class PostgresResumePoints:
    """Stores how many bytes files of frozen runs have up to some outcomes."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def end(self, file: ResumableFile) -> ResumePoint | None:
        """The end of a file; None where it was never made to its end."""
        row = await self._session.fetchrow(
            "read_export_end", run_id=file.run_id, epoch=file.epoch, tag=file.tag
        )
        return None if row is None else _point(row, is_end=True)

    async def last(self, file: ResumableFile, up_to_byte: int | None) -> ResumePoint:
        """The last place in a file, or at or before some byte of it, from which it can be made."""
        row = await self._session.fetchrow(
            "read_last_resume_point",
            run_id=file.run_id,
            epoch=file.epoch,
            tag=file.tag,
            up_to_byte=up_to_byte,
        )
        return ResumePoint() if row is None else _point(row)

    async def add(self, file: ResumableFile, point: ResumePoint) -> None:
        """Stores a point; one that is stored already stays."""
        await self._session.fetchrow(
            "add_resume_point",
            run_id=file.run_id,
            epoch=file.epoch,
            tag=file.tag,
            first_byte=point.first_byte,
            sample=point.after[0],
            rollout=point.after[1],
            is_end=point.is_end,
        )


def _point(row: asyncpg.Record, *, is_end: bool = False) -> ResumePoint:
    return ResumePoint(row["first_byte"], (row["sample"], row["rollout"]), is_end)


@dataclass(slots=True)
class _Window:
    """Rows behind a key, before a sample, that are being read."""

    after: OutcomeKey
    end: int
    rows: asyncio.Task[list[asyncpg.Record]]


@dataclass(slots=True)
class _Reading:
    """The progress of reading one task of a run. `samples`: the size of the next window."""

    query: RowQuery
    task: PlannedTask
    asked_to: OutcomeKey
    samples: int = FIRST_SAMPLES
    ahead: deque[_Window] = field(default_factory=deque)

    @property
    def is_asked(self) -> bool:
        return self.asked_to[0] >= self.task.end_sample

    def learn(self, samples: int, size_bytes: int) -> None:
        """The next windows are as large as the last one suggests."""
        fitting = CHUNK_BYTES * max(1, samples) // max(1, size_bytes)
        self.samples = max(1, min(fitting, self.samples * MAX_GROWTH, MAX_SAMPLES))


class PostgresExportRows:
    """Pages by key and no cursor: a slow reader keeps no transaction open."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def chunks(self, query: RowQuery, after: OutcomeKey) -> AsyncGenerator[RowChunk]:
        """Yields in order what comes after a key. Raises RunChanged as soon as another epoch is open."""
        task = query.record.plan.tasks[query.task_index]
        reading = _Reading(query, task, max(after, (task.first_sample, -1)))
        try:
            while True:
                self._prefetch(reading)
                if not reading.ahead:
                    return
                chunk = await self._next(reading)
                if chunk is not None:
                    yield chunk
        finally:
            # All are cancelled before the first is awaited: they end side by side.
            for window in reading.ahead:
                window.rows.cancel()
            for window in reading.ahead:
                with suppress(asyncio.CancelledError, Exception):
                    await window.rows

    def _prefetch(self, reading: _Reading) -> None:
        while len(reading.ahead) < READ_AHEAD and not reading.is_asked:
            end = min(reading.asked_to[0] + reading.samples, reading.task.end_sample)
            reading.ahead.append(self._window(reading, reading.asked_to, end))
            reading.asked_to = (end, -1)

    def _window(self, reading: _Reading, after: OutcomeKey, end: int) -> _Window:
        return _Window(after, end, asyncio.create_task(self._rows(reading, after, end), name="export rows"))

    async def _next(self, reading: _Reading) -> RowChunk | None:
        """The first of the windows; what did not fit into it is read before the next."""
        window = reading.ahead[0]
        rows = await window.rows
        reading.ahead.popleft()
        if not rows:
            reading.learn(window.end - window.after[0], 0)
            return None
        last, size_bytes = (rows[-1]["sample"], rows[-1]["rollout"]), rows[-1]["size_bytes"]
        if size_bytes >= MAX_CHUNK_BYTES:
            reading.ahead.appendleft(self._window(reading, last, window.end))
        reading.learn(last[0] - window.after[0] + 1, size_bytes + BYTES_OF_FIELDS * len(rows))
        return RowChunk(rows, last)

    async def _rows(self, reading: _Reading, after: OutcomeKey, end: int) -> list[asyncpg.Record]:
        query, task = reading.query, reading.task
        run_id, epoch = query.record.plan.run_id, query.record.epoch
        # Samples without an answer are found by the set alone.
        of_set = {"sample_set_id": task.sample_set_id, "first_sample": task.first_sample}
        rows = await self._session.fetch(
            _QUERIES[query.kind],
            run_id=run_id,
            epoch=epoch,
            **after_key(after),
            end_sample=end,
            max_bytes=MAX_CHUNK_BYTES,
            **(of_set if query.kind is RowKind.BATCH_ERROR else {}),
        )
        await self._check_epoch(query.record)
        return rows

    async def chosen(
        self, kind: RowKind, record: RunRecord, keys: Sequence[OutcomeKey]
    ) -> list[asyncpg.Record]:
        """Rows of these outcomes, in their order. Raises RunChanged as soon as another epoch is open."""
        run_id = record.plan.run_id
        rows = await self._session.fetch(
            _CHOSEN[kind], run_id=run_id, epoch=record.epoch, **key_columns(keys)
        )
        await self._check_epoch(record)
        return rows

    async def _check_epoch(self, record: RunRecord) -> None:
        """After rows were read: an epoch that is over never comes back, so they are of this one."""
        run_id = record.plan.run_id
        found = await self._session.fetchrow("read_epoch", run_id=run_id)
        if found is None or found["epoch"] != record.epoch:
            raise RunChanged(run_id=run_id)
