"""Rows of a task: how they are referenced, and their provenance."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.scheduler.suites.rows.csv_form import TEXT_WITH_HEADER, CsvForm
from services.scheduler.suites.rows.errors import RowsMissing, UnreadableRow
from services.scheduler.suites.rows.task_code import TaskCode

SourceRow = Mapping[str, object]

# Limit of a row as written in its file, and of a row in one work message.
MAX_ROW_BYTES = 4 * 1024 * 1024


# Ids that are not data sets: for these the `datasets` library reads files of the working directory.
FILE_READERS = frozenset(
    [
        *("arrow", "audiofolder", "conll", "csv", "eval", "fasta", "fastq", "genbank", "harbor", "hdf5"),
        *("iceberg", "imagefolder", "json", "lance", "meshfolder", "mmcif", "niftifolder", "pandas"),
        *("parquet", "pdb", "pdffolder", "text", "tsfile", "videofolder", "vortex", "webdataset", "xml"),
    ]
)


_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def is_hub_id(name: str) -> bool:
    """Whether it may be the name of a data set of the hub."""
    return name not in FILE_READERS and _HUB_ID.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class RowsReference:
    """Refers to one split: a file of the suite's folder (`file`), or a hub data set (`hub_id`).

    `samples`: rows of the task's own file instead. `code` of the task makes its rows of those. `data_files`
    are the files of the split in the hub's data set, where the task names them. `where`: the rows are those
    that have these values in these columns. `draw`: each row gets a column of examples.
    """

    suite: str
    file: Path | None = None
    hub_id: str = ""
    config: str = ""
    split: str = ""
    revision: str | None = None
    samples: tuple[SourceRow, ...] = ()
    data_files: tuple[str, ...] = ()
    csv: CsvForm = TEXT_WITH_HEADER
    code: TaskCode | None = None
    where: tuple[tuple[str, object], ...] = ()
    draw: "ExampleDraw | None" = None

    @property
    def is_written(self) -> bool:
        """The task's file has the rows, or names code that makes them of nothing."""
        return self.file is None and not self.hub_id

    def __str__(self) -> str:
        """A file appears by name only: its path on the server is private."""
        if self.file is not None:
            return f"{self.suite}/{self.file.name}"
        if self.is_written:
            return self.suite
        parts = [f"config {self.config!r}"] if self.config else []
        files = [f"of {', '.join(self.data_files)}"] if self.data_files else []
        files += [f"{column} {value!r}" for column, value in self.where]
        return f"{self.hub_id} ({', '.join([*parts, f'split {self.split!r}', *files])})"


@dataclass(frozen=True, slots=True)
class ExampleDraw:
    """The sampler of `code` draws `num_fewshot` rows of `pool` for each row, which it is told if it drops it.

    The other functions of `code` word examples that are no rows of the pool.
    """

    code: TaskCode
    pool: Sequence[SourceRow]
    num_fewshot: int
    drops_document: bool
    seed: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of the rows of a run: enough to compare later whether two runs used the same rows."""

    source: str
    location: str
    revision: str
    is_stand_in: bool = False


@dataclass(frozen=True, slots=True)
class RowSet:
    """`rows` can be read once, in order; they are not held in memory."""

    rows: Iterable[SourceRow]
    provenance: Provenance


def chosen_rows(rows: Iterable[SourceRow], where: Sequence[tuple[str, object]]) -> Iterator[SourceRow]:
    """The rows with these values. Raises `UnreadableRow` at one without such a column."""
    for number, row in enumerate(rows, start=1):
        absent = next((column for column, _ in where if column not in row), None)
        if absent is not None:
            raise UnreadableRow(number, f"it has no column {absent!r}, by which rows are chosen")
        if all(row[column] == value for column, value in where):
            yield row


def check_field_names(file: str, names: Sequence[str]) -> None:
    """Raises `RowsMissing` if a name is blank or occurs twice."""
    if not all(name.strip() for name in names):
        raise RowsMissing(f"the header of {file} has a field without a name")
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise RowsMissing(f"the header of {file} names {twice!r} twice")
