"""Where the rows of a task come from: their names, what is known of them, and the port that opens them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RowsReference:
    """Names one split: a file of the suite's own folder (`file`), or of a hub data set (`dataset_id`)."""

    suite: str
    file: Path | None = None
    dataset_id: str = ""
    config: str = ""
    split: str = ""
    revision: str | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return str(self.file)
        parts = [f"config {self.config!r}"] if self.config else []
        return f"{self.dataset_id} ({', '.join([*parts, f'split {self.split!r}'])})"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a run stores of its rows: enough to tell later whether two runs saw the same ones."""

    source: str
    location: str
    revision: str
    is_stand_in: bool = False
    row_count: int | None = None


@dataclass(frozen=True, slots=True)
class RowSet:
    """`rows` may be read once, in order; nothing is held in memory before."""

    rows: Iterable[Row]
    provenance: Provenance


class RowsNotHere(Exception):
    """A source does not have the rows; the reason reads on after 'Failed to load … dataset: …: '."""


class UnreadableRow(Exception):
    """A row of a source cannot be read: which one (counted from 1), and why."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(f"row {row}: {problem}")
        self.row = row
        self.problem = problem


class RowSource(Protocol):
    def open(self, reference: RowsReference) -> RowSet:
        """Raise `RowsNotHere` at once, not while the rows are read."""
        ...
