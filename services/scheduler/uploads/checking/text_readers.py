"""Reads JSON lines and CSV from chunks of bytes: values with the number of their line or row."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import orjson

from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.uploads.checking.row_fields import BATCH_FIELDS, PLAIN_FIELDS
from services.scheduler.uploads.errors import BrokenFile, FaultKind, LineFault
from services.scheduler.uploads.faults import shown
from services.scheduler.uploads.ports import Columns

# Some programs write this mark before UTF-8.
BOM = b"\xef\xbb\xbf"
# A file of line feeds compresses to nothing and would be read for minutes.
MAX_BLANK_LINES = 100_000

# A line number with its value, or with the `LineFault` of the line.
NumberedValue: TypeAlias = tuple[int, object]
# Reads a format from chunks of bytes. Raises `BrokenFile` if the rest cannot be read.
FormatReader: TypeAlias = Callable[[Iterator[bytes]], Iterator[NumberedValue]]

# Maximum bytes that are kept of a line that cannot be read: more than is shown of it.
_QUOTED_BYTES = 4096
_TOO_LONG = f"The line has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it."
# Text cells of these columns contain JSON.
_NESTED = ("messages", "metadata", "body")


def check_columns(names: Sequence[str]) -> None:
    """Raises `BrokenFile` for unknown or repeated columns: every row would have the same fault."""
    known = BATCH_FIELDS | PLAIN_FIELDS
    for name in names:
        if name not in known:
            fields = ", ".join(sorted(known))
            raise BrokenFile(
                f"The column {shown(name)} is not known; a file may have {fields}. "
                "Map other columns, as by a prompt of {{question}}."
            )
    if len(set(names)) < len(names):
        raise BrokenFile("Two columns have the same name. Keep one of them.")


def value_of_cells(cells: Mapping[str, object]) -> object:
    """Converts the cells of a table row to the value that a JSON line would have."""
    value = dict(cells)
    for name in _NESTED:
        cell = value.get(name)
        if isinstance(cell, str):
            try:
                value[name] = orjson.loads(cell)
            except orjson.JSONDecodeError as error:
                problem = f"{name} is not valid JSON: {error.msg}, at character {error.colno}."
                return LineFault(name, problem, text=cell)
    return value


def read_jsonl(chunks: Iterator[bytes]) -> Iterator[NumberedValue]:
    """Blank lines are skipped, and counted as lines."""
    blank = 0
    for number, line in enumerate(split_lines(chunks), start=1):
        try:
            if line is None:
                value: object = LineFault("", _TOO_LONG)
            else:
                value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            assert line is not None
            if not line.strip():
                blank += 1
                if blank > MAX_BLANK_LINES:
                    raise BrokenFile(f"It has more than {MAX_BLANK_LINES} blank lines.") from None
                continue
            value = _fault_of(line, error)
        yield number, value


def split_lines(chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yields lines without line ends and byte order mark; None for a line that is too long."""
    held: list[bytes] = []
    size, is_first = 0, True
    for chunk in chunks:
        head, *lines = chunk.split(b"\n")
        size += len(head)
        if size <= MAX_ROW_BYTES:
            held.append(head)
        else:
            held.clear()
        if not lines:
            continue
        line = _joined(held, size)
        yield line.removeprefix(BOM) if is_first and line else line
        is_first = False
        last = lines.pop()
        yield from lines
        held, size = [last], len(last)
    if size:
        line = _joined(held, size)
        yield line.removeprefix(BOM) if is_first and line else line


def _joined(held: list[bytes], size: int) -> bytes | None:
    return b"".join(held) if size <= MAX_ROW_BYTES else None


def _fault_of(line: bytes, error: orjson.JSONDecodeError) -> LineFault:
    try:
        line.decode()
    except UnicodeDecodeError as undecoded:
        problem = f"Its bytes are not valid UTF-8, from byte {undecoded.start + 1} on."
    else:
        problem = f"It is not valid JSON: {error.msg}, at character {error.colno}."
        if b"\0" in line:
            problem = f"It holds a NUL character, at byte {line.index(0) + 1}. Leave it out."
    return LineFault("", problem, FaultKind.UNREADABLE, text=line[:_QUOTED_BYTES].decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class UsualColumns:
    """Columns with the names of the fields of rows."""

    def check(self, names: Sequence[str]) -> None:
        check_columns(names)

    def value(self, cells: Mapping[str, object]) -> object:
        return value_of_cells(cells)


USUAL_COLUMNS = UsualColumns()


def read_csv(chunks: Iterator[bytes], columns: Columns = USUAL_COLUMNS) -> Iterator[NumberedValue]:
    """Numbers count rows from 1, without the header: a row may have several lines."""
    return _read_table(chunks, columns, partial(csv.reader, strict=True))


def read_tsv(chunks: Iterator[bytes], columns: Columns = USUAL_COLUMNS) -> Iterator[NumberedValue]:
    """As `read_csv`. Cells cannot hold tabs and line ends, so quotes are characters as any other."""
    reader = partial(csv.reader, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    return _read_table(chunks, columns, reader)


def _read_table(
    chunks: Iterator[bytes], columns: Columns, reader: Callable[..., Iterator[list[str]]]
) -> Iterator[NumberedValue]:
    # A limit of the whole process, far too low by default.
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _TextLines(chunks)
    rows = _filled_rows(reader(lines), lines)
    names = next(rows, None)
    if names is None:
        return
    if isinstance(names, LineFault):
        raise BrokenFile(f"The header of the CSV file cannot be read. {names.problem}")
    # As of `question, answer`, which many write by hand.
    names = [name.strip() for name in names]
    columns.check(names)
    for number, cells in enumerate(rows, start=1):
        yield number, cells if isinstance(cells, LineFault) else _value(names, cells, columns)


def _filled_rows(rows: Iterator[list[str]], lines: "_TextLines") -> Iterator[list[str] | LineFault]:
    blank = 0
    while (cells := _next_row(rows, lines)) is not None:
        if cells != []:
            yield cells
            continue
        blank += 1
        if blank > MAX_BLANK_LINES:
            raise BrokenFile(f"It has more than {MAX_BLANK_LINES} blank lines.")


class _TextLines:
    """Text lines for the CSV reader, with line ends for quoted cells. Remembers the problem of a line."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._lines = split_lines(chunks)
        self._problem = ""
        # How the row begins.
        self.row_text = ""
        self._line = self._row_line = self._row_bytes = 0

    def begin_row(self) -> None:
        self._row_line, self._row_bytes, self.row_text = self._line + 1, 0, ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._line += 1
        self._row_bytes += 1 if line is None else len(line) + 1
        # An unclosed quote turns the rest of the file into one row.
        if self._row_bytes > MAX_ROW_BYTES + 1:
            raise BrokenFile(
                f"The row from line {self._row_line} on has more than {MAX_ROW_BYTES // 1024**2} MiB. "
                "Shorten it, or close its quotes."
            )
        if line is None:
            self._problem = f"The row has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it."
            return "\n"
        if len(self.row_text) < _QUOTED_BYTES:
            self.row_text += f"{line[:_QUOTED_BYTES].decode(errors='replace')}\n"
        try:
            return f"{line.decode()}\n"
        except UnicodeDecodeError:
            self._problem = "Its bytes are not valid UTF-8."
            return f"{line.decode(errors='replace')}\n"

    def taken_problem(self) -> str:
        problem, self._problem = self._problem, ""
        return problem


def _next_row(rows: Iterator[list[str]], lines: _TextLines) -> list[str] | LineFault | None:
    """Returns None at the end of the file."""
    lines.begin_row()
    try:
        row = next(rows, None)
    except csv.Error as error:
        problem = lines.taken_problem() or f"It is not valid CSV: {error}."
        return LineFault("", problem, text=lines.row_text)
    problem = lines.taken_problem()
    return LineFault("", problem, text=lines.row_text) if problem else row


def _value(names: list[str], cells: list[str], columns: Columns) -> object:
    if len(cells) != len(names):
        problem = f"The row has {len(cells)} cells, but the header names {len(names)}."
        return LineFault("", problem, text=", ".join(cells))
    # An empty cell is CSV's only form of null.
    return columns.value({name: cell for name, cell in zip(names, cells, strict=True) if cell})
