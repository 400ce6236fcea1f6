"""Writes a run as a file, chunk by chunk: memory does not grow with the run, a slow reader holds it back.

The CSV and the JSONL of a frozen run are the same in every download. Resume points store their lengths, so
that a download that was cut off can be resumed.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.common.checked_fields import invalid_field
from services.results.answers.list_outcomes import OutcomeQuery
from services.results.answers.outcome_filter import task_index
from services.results.answers.postgres import PostgresListedOutcomes
from services.results.export.export_chosen import ExportChosen
from services.results.export.exported_columns import SQL_PARTS
from services.results.export.exported_run import (
    ROWS_VERSION,
    ExportedRun,
    FileChunk,
    MissingAnswer,
    ResumableFile,
    ResumePoint,
    RowKind,
    RowQuery,
)
from services.results.export.ports import ExportFormat, ExportRow, OutcomeFormat, RowFileWriter, RowFormat
from services.results.export.postgres import (
    PostgresExportRows,
    PostgresResumePoints,
)
from services.results.export.reasoning_apart import REASONING_APART
from services.results.outcomes.outcome import BEFORE_ALL
from services.results.runs.errors import RunNotFrozen
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.summaries.show_summary import ShowSummary

# A resumed download renders at most so much again before its first byte.
POINT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RenderFile:
    """`task_indexes`: the tasks of the file, in order."""

    rows: PostgresExportRows
    run: ExportedRun
    format: RowFormat
    task_indexes: Sequence[int]

    async def render(self, point: ResumePoint) -> AsyncGenerator[FileChunk]:
        """All chunks after a point; only of a resumable format after another than the first."""
        writer, at = self.format.open(self.run), point
        if point.after == BEFORE_ALL:
            # In a thread, as all that is written: the service goes on recording meanwhile.
            content = await asyncio.to_thread(writer.begin)
            at = ResumePoint(len(content))
            yield FileChunk(content, at)
        if self.format.rows is not None:
            async with aclosing(self._chunks(writer, self.format.rows, at)) as chunks:
                async for chunk in chunks:
                    at = chunk.point
                    yield chunk
        content = await asyncio.to_thread(writer.end)
        yield FileChunk(content, ResumePoint(at.first_byte + len(content), at.after, is_end=True))

    async def _chunks(
        self, writer: RowFileWriter, kind: RowKind, at: ResumePoint
    ) -> AsyncGenerator[FileChunk]:
        apart = REASONING_APART[kind]

        def write(rows: Sequence[ExportRow]) -> bytes:
            return writer.write([apart(row) for row in rows])

        for index in self.task_indexes:
            if at.after[0] >= self.run.record.plan.tasks[index].end_sample:
                continue
            query = RowQuery(kind, self.run.record, index)
            async with aclosing(self.rows.chunks(query, at.after)) as chunks:
                async for chunk in chunks:
                    content = await asyncio.to_thread(write, chunk.rows)
                    at = ResumePoint(at.first_byte + len(content), chunk.last)
                    yield FileChunk(content, at)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The file begins at `first_byte`; bytes count from 0. With `includes_total` its size is measured first.

    `missing` stands in an error file for each sample without an outcome. With `is_csv_safe` no text of a CSV
    file is a formula. `chosen`: only these outcomes, in the order of their list.
    """

    run_id: str
    format_number: int
    task: str = ""
    first_byte: int = 0
    includes_total: bool = False
    missing: MissingAnswer = field(default_factory=MissingAnswer)
    is_csv_safe: bool = False
    chosen: OutcomeQuery | None = None


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """`chunks` may be read once. `tag` is "" while the run may change, `total_bytes` None where unknown."""

    name: str
    media_type: str
    chunks: AsyncGenerator[bytes]
    tag: str = ""
    total_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ExportRun:
    """`formats` go by the number that the contract gives them."""

    records: RunRecordStore
    rows: PostgresExportRows
    outcomes: PostgresListedOutcomes
    resume_points: PostgresResumePoints
    signing_key: Ed25519PrivateKey
    chosen: ExportChosen
    show_summary: ShowSummary
    formats: Mapping[int, ExportFormat]

    async def export(self, request: ExportRequest) -> ExportedFile:
        """The file in chunks. Errors of the request are raised here, before the first chunk."""
        file_format = self.formats.get(request.format_number)
        if file_format is None:
            raise invalid_field("format", "must be given")
        record = await self.records.get(request.run_id)
        indexes = _task_indexes(record.plan, request.task, file_format)
        _check_part(request, file_format, record)
        run = await self._exported_run(request, record, file_format)
        named_task = record.plan.tasks[indexes[0]].task if request.task or file_format.is_of_one_task else ""
        name = run.file_stem(named_task) + file_format.suffix
        if request.chosen:
            chunks = await self.chosen.export(run, file_format, request.chosen)
            return ExportedFile(f"chosen_{name}", file_format.media_type, chunks)
        if isinstance(file_format, OutcomeFormat):
            return ExportedFile(name, file_format.media_type, self._outcome_chunks(run, file_format, indexes))
        render = RenderFile(self.rows, run, file_format, indexes)
        if not (file_format.is_resumable and _is_final(record)):
            return ExportedFile(name, file_format.media_type, _content(render))
        file = ResumableFile(request.run_id, record.epoch, _tag(request, record, run))
        end = await self._end(file, render, is_needed=request.includes_total or request.first_byte > 0)
        rest = self._rest(file, render, request.first_byte, end)
        return ExportedFile(name, file_format.media_type, rest, file.tag, end.first_byte if end else None)

    async def _exported_run(
        self, request: ExportRequest, record: RunRecord, file_format: ExportFormat
    ) -> ExportedRun:
        [progress] = await self.records.counts([record.plan], [])
        has_figures = isinstance(file_format, RowFormat) and file_format.has_figures
        figures = await self.show_summary.show(record.plan.run_id) if has_figures else None
        is_partial = progress.counts.recorded < record.plan.total
        is_signed = isinstance(file_format, RowFormat) and file_format.is_signed
        return ExportedRun(
            record,
            is_partial,
            progress.counts.environment,
            figures,
            request.missing,
            request.is_csv_safe,
            self.signing_key if is_signed else None,
        )

    async def _outcome_chunks(
        self, run: ExportedRun, file_format: OutcomeFormat, indexes: Sequence[int]
    ) -> AsyncGenerator[bytes]:
        writer = file_format.open(run)
        for index in indexes:
            async for chunk in self.outcomes.chunks(run.record.plan, index, has_docs=True):
                yield await asyncio.to_thread(writer.write, chunk)

    async def _end(self, file: ResumableFile, render: RenderFile, *, is_needed: bool) -> ResumePoint | None:
        """The end of the file; measured only where it must be known."""
        end = await self.resume_points.end(file)
        if end is None and is_needed:
            last = await self.resume_points.last(file, None)
            async with aclosing(self._storing_points(file, render, last)) as measured:
                async for chunk in measured:
                    end = chunk.point
        return end

    async def _rest(
        self, file: ResumableFile, render: RenderFile, first_byte: int, end: ResumePoint | None
    ) -> AsyncGenerator[bytes]:
        """The file from `first_byte` on; `end` where it is known, so that no point is stored again."""
        if end is not None and first_byte >= end.first_byte:
            return
        point = await self.resume_points.last(file, first_byte)
        rest = self._storing_points(file, render, point) if end is None else render.render(point)
        to_skip = first_byte - point.first_byte
        async with aclosing(rest):
            async for chunk in rest:
                if len(chunk.content) > to_skip:
                    yield chunk.content[to_skip:]
                to_skip = max(0, to_skip - len(chunk.content))

    async def _storing_points(
        self, file: ResumableFile, render: RenderFile, point: ResumePoint
    ) -> AsyncGenerator[FileChunk]:
        """The chunks after a point. Stores further points on the way."""
        noted = point.first_byte
        async with aclosing(render.render(point)) as behind:
            async for chunk in behind:
                if chunk.point.is_end or chunk.point.first_byte - noted >= POINT_BYTES:
                    await self.resume_points.add(file, chunk.point)
                    noted = chunk.point.first_byte
                yield chunk


async def _content(render: RenderFile) -> AsyncGenerator[bytes]:
    async with aclosing(render.render(ResumePoint())) as all_chunks:
        async for chunk in all_chunks:
            yield chunk.content


def _task_indexes(plan: RunPlan, task: str, file_format: ExportFormat) -> list[int]:
    if task:
        return [task_index(plan, task)]
    if file_format.is_of_one_task and len(plan.tasks) > 1:
        names = ", ".join(planned.task for planned in plan.tasks)
        raise invalid_field("task", f"must be given for this format, one of: {names}")
    return list(range(len(plan.tasks)))


def _check_part(request: ExportRequest, file_format: ExportFormat, record: RunRecord) -> None:
    if request.first_byte < 0:
        raise invalid_field("first_byte", "must not be negative")
    if isinstance(file_format, RowFormat) and file_format.is_signed:
        if request.task:
            raise invalid_field("task", "must be empty: a card is of the whole run")
        if not _is_final(record):
            raise RunNotFrozen(run_id=request.run_id)
    if not request.first_byte:
        return
    if request.chosen:
        raise invalid_field("first_byte", "must be 0: a file of chosen outcomes cannot be resumed")
    if not (isinstance(file_format, RowFormat) and file_format.is_resumable):
        raise invalid_field("first_byte", "must be 0: only CSV and JSONL can be resumed")
    if not _is_final(record):
        raise RunNotFrozen(run_id=request.run_id)


def _is_final(record: RunRecord) -> bool:
    return record.is_frozen and record.state is not None


def _tag(request: ExportRequest, record: RunRecord, run: ExportedRun) -> str:
    """A hash of all that decides the content of the file."""
    way = (request.format_number, request.task, request.is_csv_safe)
    parts = (ROWS_VERSION, SQL_PARTS["exported_line"], request.run_id, record.epoch, *way, *run.metrics)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
