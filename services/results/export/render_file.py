"""Makes a file of lines, piece by piece, from its beginning or from a mark on; it may have any size."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from services.results.export.format import ExportedRun, LineForm, LineWriter
from services.results.export.lines import FileMark, FilePiece, LineKind, MissingAnswer, WantedLines
from services.results.export.ports import ExportedLines
from services.results.outcomes.outcome import BEFORE_ALL


@dataclass(frozen=True, slots=True)
class RenderFile:
    """`task_indexes`: the tasks of the file, in order."""

    lines: ExportedLines
    run: ExportedRun
    form: LineForm
    task_indexes: Sequence[int]
    missing: MissingAnswer

    async def __call__(self, mark: FileMark) -> AsyncGenerator[FilePiece]:
        """All pieces that come after a mark; only of a resumable form after another than the first."""
        writer, at = self.form.open(self.run), mark
        if mark.after == BEFORE_ALL:
            # In a thread, as all that is written: the service goes on recording meanwhile.
            data = await asyncio.to_thread(writer.begin)
            at = FileMark(len(data))
            yield FilePiece(data, at)
        if self.form.lines is not None:
            async with aclosing(self._line_pieces(writer, self.form.lines, at)) as pieces:
                async for piece in pieces:
                    at = piece.mark
                    yield piece
        data = await asyncio.to_thread(writer.end)
        yield FilePiece(data, FileMark(at.first_byte + len(data), at.after, is_end=True))

    async def _line_pieces(
        self, writer: LineWriter, kind: LineKind, at: FileMark
    ) -> AsyncGenerator[FilePiece]:
        for index in self.task_indexes:
            if at.after[0] >= self.run.record.plan.tasks[index].end_sample:
                continue
            wanted = WantedLines(kind, self.run.record, index, self.missing)
            async with aclosing(self.lines.chunks(wanted, at.after)) as chunks:
                async for chunk in chunks:
                    data = await asyncio.to_thread(writer.write, chunk.lines)
                    at = FileMark(at.first_byte + len(data), chunk.last)
                    yield FilePiece(data, at)
