"""Rows of a CSV file: a header with the names of the fields, then rows; what is nested is written as JSON."""

import csv
from collections.abc import Iterator

from services.scheduler.datasets.checking.dataset_fault import BrokenFile, LineFault
from services.scheduler.datasets.checking.json_cells import check_columns, value_of_cells
from services.scheduler.datasets.checking.jsonl_lines import MAX_BLANK_LINES, split_lines
from services.scheduler.datasets.checking.row_reader import MAX_ROW_BYTES, NumberedValue


def read_csv(pieces: Iterator[bytes]) -> Iterator[NumberedValue]:
    """Numbers are those of rows, from 1: a row may have several lines."""
    # The module has one limit for the whole process, and it is far too low.
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _TextLines(pieces)
    rows = _filled_rows(csv.reader(lines, strict=True), lines)
    names = next(rows, None)
    if names is None:
        return
    if isinstance(names, LineFault):
        raise BrokenFile(f"The header of the CSV file cannot be read. {names.problem}")
    check_columns(names)
    for number, cells in enumerate(rows, start=1):
        yield number, cells if isinstance(cells, LineFault) else _value(names, cells)


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
    """Lines as text with their ends, which belong to quoted cells. Remembers what was wrong with one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._lines = split_lines(pieces)
        self._problem = ""
        self._line = self._row_line = self._row_bytes = 0

    def begin_row(self) -> None:
        self._row_line, self._row_bytes = self._line + 1, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._line += 1
        self._row_bytes += 1 if line is None else len(line) + 1
        # A quote that is never closed makes one row of all that follows.
        if self._row_bytes > MAX_ROW_BYTES + 1:
            raise BrokenFile(
                f"The row from line {self._row_line} on has more than {MAX_ROW_BYTES // 1024**2} MiB. "
                "Shorten it, or close its quotes."
            )
        if line is None:
            self._problem = f"The row has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it."
            return "\n"
        try:
            return f"{line.decode()}\n"
        except UnicodeDecodeError:
            self._problem = "Its bytes are not valid UTF-8."
            return f"{line.decode(errors='replace')}\n"

    def taken_problem(self) -> str:
        problem, self._problem = self._problem, ""
        return problem


def _next_row(rows: Iterator[list[str]], lines: _TextLines) -> list[str] | LineFault | None:
    """None at the end."""
    lines.begin_row()
    try:
        row = next(rows, None)
    except csv.Error as error:
        return LineFault("", lines.taken_problem() or f"It is not valid CSV: {error}.")
    problem = lines.taken_problem()
    return LineFault("", problem) if problem else row


def _value(names: list[str], cells: list[str]) -> object:
    if len(cells) != len(names):
        return LineFault("", f"The row has {len(cells)} cells, but the header names {len(names)}.")
    # CSV has no other way to say that there is nothing.
    return value_of_cells({name: cell for name, cell in zip(names, cells, strict=True) if cell})
