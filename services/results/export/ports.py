"""Ports of exports."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.results.export.exported_run import ExportedRun, RowKind
from services.results.outcomes.outcome import ListedOutcome, OutcomeKey


class ExportRow(Protocol):
    """A row of the query of its kind: values by the names of the columns."""

    def __getitem__(self, column: str, /) -> Any: ...  # columns have many types

    def keys(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Rows in order, and the key of the last one."""

    rows: Sequence[ExportRow]
    last: OutcomeKey


class RowFileWriter(Protocol):
    """Writes one file of rows of a kind."""

    def begin(self) -> bytes: ...

    def write(self, rows: Sequence[ExportRow]) -> bytes: ...

    def end(self) -> bytes: ...


class OutcomeWriter(Protocol):
    """Writes one file of outcomes beside their samples."""

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class RowFormat:
    """`rows`: what the file has a line for; None: only figures. `has_figures`: it shows the summary.

    `is_resumable`: its writer keeps nothing from one chunk to the next, so that a download can be
    resumed. `is_signed`: it is of a whole closed run, and signed by the installation.
    """

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], RowFileWriter]
    rows: RowKind | None = RowKind.COLUMNS
    has_figures: bool = False
    is_resumable: bool = False
    is_of_one_task: bool = False
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeFormat:
    """A format of one task that needs more of it than rows."""

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], OutcomeWriter]
    is_of_one_task: bool = True


ExportFormat = RowFormat | OutcomeFormat
