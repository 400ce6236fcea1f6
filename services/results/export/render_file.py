"""Makes a file of rows, piece by piece, from its beginning or from a mark on; it may have any size."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from services.results.export.format import ExportedRun, RowFormat, RowWriter
from services.results.export.ports import ExportRows
from services.results.export.rows import FileMark, FilePiece, RowKind, RowQuery
from services.results.outcomes.outcome import BEFORE_ALL


@dataclass(frozen=True, slots=True)
class RenderFile:
    """`task_indexes`: the tasks of the file, in order."""

    rows: ExportRows
    run: ExportedRun
    format: RowFormat
    task_indexes: Sequence[int]

    async def render(self, mark: FileMark) -> AsyncGenerator[FilePiece]:
        """All pieces that come after a mark; only of a resumable format after another than the first."""
        writer, at = self.format.open(self.run), mark
        if mark.after == BEFORE_ALL:
            # In a thread, as all that is written: the service goes on recording meanwhile.
            data = await asyncio.to_thread(writer.begin)
            at = FileMark(len(data))
            yield FilePiece(data, at)
        if self.format.rows is not None:
            async with aclosing(self._pieces(writer, self.format.rows, at)) as pieces:
                async for piece in pieces:
                    at = piece.mark
                    yield piece
        data = await asyncio.to_thread(writer.end)
        yield FilePiece(data, FileMark(at.first_byte + len(data), at.after, is_end=True))

    async def _pieces(self, writer: RowWriter, kind: RowKind, at: FileMark) -> AsyncGenerator[FilePiece]:
        for index in self.task_indexes:
            if at.after[0] >= self.run.record.plan.tasks[index].end_sample:
                continue
            query = RowQuery(kind, self.run.record, index)
            async with aclosing(self.rows.chunks(query, at.after)) as chunks:
                async for chunk in chunks:
                    data = await asyncio.to_thread(writer.write, chunk.rows)
                    at = FileMark(at.first_byte + len(data), chunk.last)
                    yield FilePiece(data, at)
