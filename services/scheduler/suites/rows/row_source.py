"""Rows of a task: how they are referenced, their provenance, and the port that opens them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from services.scheduler.suites.suite_errors import DatasetUnavailable

Row = Mapping[str, object]

MAX_ROW_BYTES = 4 * 1024 * 1024


"""Of a row as its file writes it."""


FILE_READERS = frozenset(
    [
        *("arrow", "audiofolder", "conll", "csv", "eval", "fasta", "fastq", "genbank", "harbor", "hdf5"),
        *("iceberg", "imagefolder", "json", "lance", "meshfolder", "mmcif", "niftifolder", "pandas"),
        *("parquet", "pdb", "pdffolder", "text", "tsfile", "videofolder", "vortex", "webdataset", "xml"),
    ]
)


"""Ids that name no data set: by them the `datasets` library reads the files of the working directory."""


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
        """A file by its name: where it lies is the server's own affair."""
        if self.file is not None:
            return f"{self.suite}/{self.file.name}"
        parts = [f"config {self.config!r}"] if self.config else []
        return f"{self.dataset_id} ({', '.join([*parts, f'split {self.split!r}'])})"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a run stores of its rows: enough to tell later whether two runs saw the same ones."""

    source: str
    location: str
    revision: str
    is_stand_in: bool = False


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


def check_field_names(file: str, names: Sequence[str]) -> None:
    """Raises `RowsNotHere` where a value could not be told by its name."""
    if not all(name.strip() for name in names):
        raise RowsNotHere(f"the header of {file} has a field without a name")
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise RowsNotHere(f"the header of {file} names {twice!r} twice")


class RowSource(Protocol):
    def open(self, reference: RowsReference) -> RowSet:
        """Raise `RowsNotHere` at once, not while the rows are read."""
        ...


class FirstAvailableSource:
    """Sources are asked in order. Where none has the rows, the error tells why each of them does not."""

    def __init__(self, own_files: RowSource, hub_places: Sequence[RowSource]) -> None:
        self._own_files = own_files
        self._hub_places = tuple(hub_places)

    def open(self, reference: RowsReference) -> RowSet:
        reasons = []
        for source in (self._own_files,) if reference.file is not None else self._hub_places:
            try:
                return source.open(reference)
            except RowsNotHere as reason:
                reasons.append(str(reason))
        raise DatasetUnavailable(reference.suite, str(reference), reasons)
