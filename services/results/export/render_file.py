"""Makes a file of rows, chunk by chunk, from its beginning or from a mark on; it may have any size."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from services.results.export.format import ExportedRun, RowFormat, RowWriter
from services.results.export.ports import ExportRows
from services.results.export.rows import FileChunk, FileMark, RowKind, RowQuery
from services.results.outcomes.outcome import BEFORE_ALL


@dataclass(frozen=True, slots=True)
class RenderFile:
    """`task_indexes`: the tasks of the file, in order."""

    rows: ExportRows
    run: ExportedRun
    format: RowFormat
    task_indexes: Sequence[int]

    async def render(self, mark: FileMark) -> AsyncGenerator[FileChunk]:
        """All chunks that come after a mark; only of a resumable format after another than the first."""
        writer, at = self.format.open(self.run), mark
        if mark.after == BEFORE_ALL:
            # In a thread, as all that is written: the service goes on recording meanwhile.
            data = await asyncio.to_thread(writer.begin)
            at = FileMark(len(data))
            yield FileChunk(data, at)
        if self.format.rows is not None:
            async with aclosing(self._chunks(writer, self.format.rows, at)) as chunks:
                async for chunk in chunks:
                    at = chunk.mark
                    yield chunk
        data = await asyncio.to_thread(writer.end)
        yield FileChunk(data, FileMark(at.first_byte + len(data), at.after, is_end=True))

    async def _chunks(self, writer: RowWriter, kind: RowKind, at: FileMark) -> AsyncGenerator[FileChunk]:
        for index in self.task_indexes:
            if at.after[0] >= self.run.record.plan.tasks[index].end_sample:
                continue
            query = RowQuery(kind, self.run.record, index)
            async with aclosing(self.rows.chunks(query, at.after)) as chunks:
                async for chunk in chunks:
                    data = await asyncio.to_thread(writer.write, chunk.rows)
                    at = FileMark(at.first_byte + len(data), chunk.last)
                    yield FileChunk(data, at)
