"""Writes the outcomes of a list as a file: those that match its filters, in its order."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

from services.common.checked_fields import invalid_field
from services.results.answers.list_outcomes import ListOutcomes, OutcomeQuery
from services.results.export.exported_run import ExportedRun, RowKind
from services.results.export.ports import ExportFormat, ExportRow, RowFormat
from services.results.export.postgres import PostgresExportRows
from services.results.export.reasoning_apart import REASONING_APART

_PER_PAGE = 500


@dataclass(frozen=True, slots=True)
class ExportChosen:
    """Memory: a page of outcomes, as large as one message may be."""

    list_outcomes: ListOutcomes
    rows: PostgresExportRows

    async def export(
        self, run: ExportedRun, file_format: ExportFormat, query: OutcomeQuery
    ) -> AsyncGenerator[bytes]:
        """The file in chunks. Errors of the query are raised here, before the first chunk."""
        kind = _kind_of_rows(file_format)
        assert isinstance(file_format, RowFormat)
        query = replace(query, page_size=_PER_PAGE)
        pages = self._pages(run, kind, query)
        first = await anext(pages, ())
        return _content(file_format, run, first, pages)

    async def _pages(
        self, run: ExportedRun, kind: RowKind, query: OutcomeQuery
    ) -> AsyncGenerator[Sequence[ExportRow]]:
        apart = REASONING_APART[kind]
        while True:
            page = await self.list_outcomes.list_keys(run.record, query)
            rows = await self.rows.chosen(kind, run.record, page.keys) if page.keys else ()
            yield [apart(row) for row in rows]
            if not page.next_page_token:
                return
            query = replace(query, page_token=page.next_page_token)


def _kind_of_rows(file_format: ExportFormat) -> RowKind:
    is_plain = isinstance(file_format, RowFormat) and not file_format.has_figures
    kind = file_format.rows if isinstance(file_format, RowFormat) and is_plain else None
    if kind not in (RowKind.LINE, RowKind.COLUMNS):
        raise invalid_field("filter", "must be unset: only CSV, JSONL and Parquet have chosen outcomes")
    return kind


async def _content(
    file_format: RowFormat,
    run: ExportedRun,
    first: Sequence[ExportRow],
    pages: AsyncGenerator[Sequence[ExportRow]],
) -> AsyncGenerator[bytes]:
    """In a thread, as all that is written: the service goes on recording meanwhile."""
    writer = file_format.open(run)
    yield await asyncio.to_thread(writer.begin)
    yield await asyncio.to_thread(writer.write, first)
    async for rows in pages:
        yield await asyncio.to_thread(writer.write, rows)
    yield await asyncio.to_thread(writer.end)
