"""Readers of row files, a few rows at a time: CSV (RFC 4180), JSON lines, Parquet."""

import csv
import errno
import hashlib
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from types import NoneType
from typing import BinaryIO

import orjson

from proctor.values.plain import MAX_LEVELS, is_shallow
from services.scheduler.suites.rows.csv_form import TEXT_WITH_HEADER, CsvForm, typed_rows
from services.scheduler.suites.rows.errors import RowsMissing, UnreadableParquet, UnreadableRow
from services.scheduler.suites.rows.first_bytes import BEGINNING_BYTES, foreign_form, other_separator
from services.scheduler.suites.rows.parquet_rows import UnfitRow, open_parquet
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES, SourceRow, check_field_names

# A user's suite has small files, and its rows are waited for.
_PARQUET_CPU_SECONDS = 300
_READ_BYTES = 64 * 1024
_PLAIN = frozenset({str, int, bool, NoneType})
_TOO_DEEP = f"its lists and objects are nested in more than {MAX_LEVELS} levels"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """`state` changes whenever the file is written or replaced."""

    path: Path
    digest: str
    state: tuple[int, int, int]

    def open(self) -> BinaryIO:
        try:
            content = self.path.open("rb")
        except OSError as error:
            raise UnreadableRow(1, f"the file cannot be read again ({error.strerror})") from error
        return content

    def require_unchanged(self, content: BinaryIO, row: int) -> None:
        """Called after each read and before its rows are used: the digest must be that of the rows read."""
        if _state(content) != self.state:
            raise UnreadableRow(row, "the file was changed since its digest was taken")


def _require_text(file: PinnedFile) -> None:
    """Raises `RowsMissing` for a file in another form than its name says, such as a workbook named .csv."""
    with file.open() as content:
        if foreign := foreign_form(content.read(BEGINNING_BYTES)):
            raise RowsMissing(f"{file.path.name} is {foreign}")


def _require_commas(file: PinnedFile) -> None:
    with file.open() as content:
        if signs := other_separator(content.read(BEGINNING_BYTES)):
            raise RowsMissing(
                f"the columns of {file.path.name} are separated by {signs}: separate them by commas"
            )


def pin_file(path: Path) -> PinnedFile:
    """Reads the file once for its digest. Raises `OSError`."""
    if not S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open("rb") as content:
        state = _state(content)
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return PinnedFile(path, digest, state)


def _state(content: BinaryIO) -> tuple[int, int, int]:
    facts = os.fstat(content.fileno())
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def read_csv(file: PinnedFile, form: CsvForm = TEXT_WITH_HEADER) -> Iterator[SourceRow]:
    """Rows count from 1, without header and empty lines. Raises `RowsMissing` at once for the header."""
    _require_text(file)
    delimiter = form.delimiter or ("\t" if file.path.suffix == ".tsv" else ",")
    if delimiter == ",":
        _require_commas(file)
    header = list(form.column_names) or _header(file, delimiter)
    check_field_names(file.path.name, header)

    def rows() -> Iterator[SourceRow]:
        return _csv_rows(file, header, delimiter, first=1 if form.has_header else 0)

    return typed_rows(rows) if form.infers_types else rows()


def _header(file: PinnedFile, delimiter: str) -> list[str]:
    with file.open() as content:
        try:
            header = next(_records(file, content, delimiter, row=0), None)
        except UnreadableRow as error:
            raise RowsMissing(f"the header of {file.path.name} cannot be read: {error.problem}") from error
    if header is None:
        raise RowsMissing(f"{file.path.name} has no header")
    return header


def _csv_rows(file: PinnedFile, header: Sequence[str], delimiter: str, *, first: int) -> Iterator[SourceRow]:
    """`first`: the record of the file that is the first row."""
    with file.open() as content:
        records = islice(_records(file, content, delimiter, row=1 - first), first, None)
        for number, record in enumerate(records, start=1):
            if len(record) != len(header):
                problem = f"it has {len(record)} fields where the header names {len(header)}"
                raise UnreadableRow(number, problem)
            yield dict(zip(header, record, strict=True))


def _records(file: PinnedFile, content: BinaryIO, delimiter: str, *, row: int) -> Iterator[list[str]]:
    """Yields a header as row 0, then the rows; `row` is the number of the first record."""
    # A limit of the whole process; `_Lines` bounds a row.
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _Lines(file, content, row)
    try:
        for record in csv.reader(lines, strict=True, delimiter=delimiter):
            if record:
                yield record
                lines.row += 1
            lines.taken = 0
    except csv.Error as error:
        raise UnreadableRow(lines.row, f"not valid CSV: {error}") from error


class _Lines:
    """Lines for the CSV reader; stops reading a row that exceeds the limit."""

    def __init__(self, file: PinnedFile, content: BinaryIO, row: int) -> None:
        self.row = row
        self.taken = 0
        self._file = file
        self._content = content
        self._is_first = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        # Two more than a row may have: its line end.
        line = self._content.readline(MAX_ROW_BYTES + 2)
        self._file.require_unchanged(self._content, self.row)
        self.taken += len(line)
        if not line:
            raise StopIteration
        if self.taken > MAX_ROW_BYTES:
            raise UnreadableRow(self.row, f"it has more than {MAX_ROW_BYTES} bytes")
        if b"\0" in line:
            raise UnreadableRow(self.row, "it holds a NUL character")
        if self._is_first:
            line, self._is_first = line.removeprefix(BOM_UTF8), False
        return self._decoded(line)

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise UnreadableRow(self.row, "not valid UTF-8") from error


def read_jsonl(file: PinnedFile) -> Iterator[SourceRow]:
    """Skips empty lines; rows count from 1. Stops reading a line that exceeds the limit."""
    _require_text(file)
    return _jsonl_rows(file)


def _jsonl_rows(file: PinnedFile) -> Iterator[SourceRow]:
    row = 0
    with file.open() as content:
        while True:
            lines = _some_lines(content)
            # Also at the end: a file that was cut short looks like one that is over.
            file.require_unchanged(content, row + 1 if lines else max(row, 1))
            if not lines:
                return
            for line in lines:
                if line.strip():
                    row += 1
                    yield _json_row(row, line)


def _some_lines(content: BinaryIO) -> Sequence[bytes]:
    """The next lines, so many that a look at the file is cheap beside them; none at its end."""
    block = content.read(_READ_BYTES)
    # Two more than a row may have: its line end.
    return (block + content.readline(MAX_ROW_BYTES + 2)).split(b"\n") if block else ()


def _json_row(number: int, line: bytes) -> SourceRow:
    if len(line) > MAX_ROW_BYTES and len(line.rstrip(b"\r")) > MAX_ROW_BYTES:
        raise UnreadableRow(number, f"the line has more than {MAX_ROW_BYTES} bytes")
    if number == 1:
        line = line.removeprefix(BOM_UTF8)
    row = _plain_row(line)
    return _any_row(number, line) if row is None else row


def _plain_row(line: bytes) -> SourceRow | None:
    """A row of texts, whole numbers and lists of them, in a fifth of the time; None for any other.

    orjson refuses some of what `json` reads (NaN, lone surrogates), and makes floats of whole numbers over
    64 bits.
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if type(row) is not dict:
        return None
    if _PLAIN.issuperset(map(type, row.values())):
        return row
    lists = [value for value in row.values() if type(value) not in _PLAIN]
    is_plain = all(type(each) is list and _PLAIN.issuperset(map(type, each)) for each in lists)
    return row if is_plain else None


def _any_row(number: int, line: bytes) -> SourceRow:
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise UnreadableRow(number, f"not valid UTF-8 (byte {error.start + 1} of the line)") from error
    except RecursionError as error:
        raise UnreadableRow(number, _TOO_DEEP) from error
    except ValueError as error:
        raise UnreadableRow(number, f"not valid JSON: {error}") from error
    if not is_shallow(row):
        raise UnreadableRow(number, _TOO_DEEP)
    if not isinstance(row, dict):
        raise UnreadableRow(number, "a JSON object is needed")
    return row


def read_parquet(file: PinnedFile) -> Iterator[SourceRow]:
    """Raises `RowsMissing` at once if it is not a Parquet file or has too large row groups."""
    with file.open() as content:
        try:
            parquet = open_parquet(content, _PARQUET_CPU_SECONDS)
        except UnreadableParquet as error:
            raise RowsMissing(f"{file.path.name} is not a readable Parquet file ({error})") from error
    check_field_names(file.path.name, parquet.columns)
    return _parquet_rows(file, parquet.rows)


def _parquet_rows(file: PinnedFile, rows: Iterator[SourceRow | UnfitRow]) -> Iterator[SourceRow]:
    number = 0
    with file.open() as content:
        file.require_unchanged(content, 1)
        try:
            for number, row in enumerate(rows, start=1):
                file.require_unchanged(content, number)
                if isinstance(row, UnfitRow):
                    raise UnreadableRow(number, f"it has more than {row.limit}")
                yield row
        except UnreadableParquet as error:
            raise UnreadableRow(number + 1, f"not valid Parquet: {error}") from error
