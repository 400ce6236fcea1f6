"""A CSV file (RFC 4180, UTF-8) with a header, row by row; every value is text."""

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from services.scheduler.suites.rows.file_pin import PinnedFile
from services.scheduler.suites.rows.row_source import (
    MAX_ROW_BYTES,
    Row,
    RowsNotHere,
    UnreadableRow,
    check_field_names,
)


def read_csv(file: PinnedFile) -> Iterator[Row]:
    """Rows are counted from 1, without the header and empty lines. A header that is unfit is told at once."""
    with file.open() as content:
        try:
            header = next(_records(file, content), None)
        except UnreadableRow as error:
            raise RowsNotHere(f"the header of {file.path.name} cannot be read: {error.problem}") from error
    if header is None:
        raise RowsNotHere(f"{file.path.name} has no header")
    check_field_names(file.path.name, header)
    return _rows(file, header)


def _rows(file: PinnedFile, header: Sequence[str]) -> Iterator[Row]:
    with file.open() as content:
        records = _records(file, content)
        next(records)
        for number, record in enumerate(records, start=1):
            if len(record) != len(header):
                problem = f"it has {len(record)} fields where the header names {len(header)}"
                raise UnreadableRow(number, problem)
            yield dict(zip(header, record, strict=True))


def _records(file: PinnedFile, content: BinaryIO) -> Iterator[list[str]]:
    """The header first, as row 0."""
    # For the whole process; what one row may take is bounded by its lines.
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _Lines(file, content)
    try:
        for record in csv.reader(lines, strict=True):
            if record:
                yield record
                lines.row += 1
            lines.taken = 0
    except csv.Error as error:
        raise UnreadableRow(lines.row, f"no valid CSV: {error}") from error


class _Lines:
    """Lines as the CSV reader asks for them: of a row over the limit, no more than that is read."""

    def __init__(self, file: PinnedFile, content: BinaryIO) -> None:
        self.row = 0
        self.taken = 0
        self._file = file
        self._content = content
        self._is_first = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
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
            raise UnreadableRow(self.row, "no valid UTF-8") from error
