"""What exports need from the stores."""

from collections.abc import AsyncGenerator
from typing import Protocol

from services.results.export.lines import FileMark, LineChunk, MarkedFile, WantedLines
from services.results.outcomes.outcome import OutcomeKey


class ExportedLines(Protocol):
    """Lines of exports, whole ones."""

    def chunks(self, wanted: WantedLines, after: OutcomeKey) -> AsyncGenerator[LineChunk]:
        """By sample and rollout, about a megabyte at a time, what comes after a key.

        Raises RunChanged where the run was opened again meanwhile.
        """
        ...


class ExportMarks(Protocol):
    """Keeps how many bytes files of closed runs have up to some outcomes."""

    async def end(self, file: MarkedFile) -> FileMark | None:
        """Where a file ends; None where it was never made to its end."""
        ...

    async def last(self, file: MarkedFile, up_to_byte: int | None) -> FileMark:
        """The last place in a file, or at or before some byte of it, from which it can be made."""
        ...

    async def add(self, file: MarkedFile, mark: FileMark) -> None:
        """Keeps a mark; one that is kept already stays."""
        ...
