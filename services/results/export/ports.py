"""Ports of exports."""

from collections.abc import AsyncGenerator
from typing import Protocol

from services.results.export.format import FileMark, MarkedFile, RowChunk, RowQuery
from services.results.outcomes.outcome import OutcomeKey


class ExportRows(Protocol):
    """Rows of outcomes beside their samples."""

    def chunks(self, query: RowQuery, after: OutcomeKey) -> AsyncGenerator[RowChunk]:
        """Yields by sample and rollout, about a megabyte at a time, what comes after a key.

        Raises RunChanged where the run was opened again meanwhile.
        """
        ...


class ExportMarks(Protocol):
    """Stores how many bytes files of closed runs have up to some outcomes."""

    async def end(self, file: MarkedFile) -> FileMark | None:
        """The end of a file; None where it was never made to its end."""
        ...

    async def last(self, file: MarkedFile, up_to_byte: int | None) -> FileMark:
        """The last place in a file, or at or before some byte of it, from which it can be made."""
        ...

    async def add(self, file: MarkedFile, mark: FileMark) -> None:
        """Stores a mark; one that is stored already stays."""
        ...
