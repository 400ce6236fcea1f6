"""Applies a mapping of columns to a row, before the row is checked like any other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from proctor.values.uploads.column_mapping import ColumnMapping, pieces_of
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.uploads.checking.row_fields import BATCH_FIELDS, PLAIN_FIELDS
from services.scheduler.uploads.checking.text_readers import USUAL_COLUMNS
from services.scheduler.uploads.errors import BrokenFile, FaultKind, LineFault
from services.scheduler.uploads.faults import kind_of, shown

_MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class MappedColumns:
    """The columns of a table whose names are mapped."""

    mapping: ColumnMapping

    def check(self, names: Sequence[str]) -> None:
        """Raises `BrokenFile` where the mapping names a column that is not there."""
        if len(set(names)) < len(names):
            raise BrokenFile("Two columns have the same name. Rename one of them.")
        for name in self.mapping.columns:
            if name not in names and name.split(".")[0] not in names:
                raise BrokenFile(f"The file has no column {shown(name)}; it has {_listed(names)}.")

    def value(self, cells: Mapping[str, object]) -> object:
        """Cells as they are. A column that the mapping names is in each row, if only as an empty cell."""
        empty = {name: "" for name in self.mapping.columns if name.split(".")[0] not in cells}
        return {**empty, **cells}


class AnyColumns:
    """The columns of a table of which nobody has said yet what they are."""

    def check(self, names: Sequence[str]) -> None:
        """Raises `BrokenFile`."""
        if len(set(names)) < len(names):
            raise BrokenFile("Two columns have the same name. Rename one of them.")

    def value(self, cells: Mapping[str, object]) -> object:
        return USUAL_COLUMNS.value(cells) if are_usual(cells) else dict(cells)


def are_usual(columns: Iterable[str]) -> bool:
    return set(columns) <= BATCH_FIELDS | PLAIN_FIELDS


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(map(shown, names[:_MAX_LISTED])) + more


@dataclass(frozen=True, slots=True)
class MapColumns:
    """Makes lines of the usual fields. Columns that it does not name become metadata."""

    mapping: ColumnMapping

    def line(self, value: object) -> object:
        """Raises `LineFault`."""
        if not isinstance(value, dict):
            raise LineFault("", f"A line must be a JSON object, not {kind_of(value)}.")
        line: dict[str, object] = {"prompt": self._prompt(value)}
        if self.mapping.target and (target := _text(_cell(value, self.mapping.target), self.mapping.target)):
            line["target"] = target
        if self.mapping.id:
            line["id"] = _text(_cell(value, self.mapping.id), self.mapping.id)
        named = set(self.mapping.columns)
        if metadata := {name: cell for name, cell in value.items() if name not in named}:
            line["metadata"] = metadata
        return line

    def _prompt(self, value: Mapping[str, object]) -> str:
        pieces = pieces_of(self.mapping.prompt)
        texts = {name: _shown_text(_cell(value, name)) for name in dict.fromkeys(pieces[1::2])}
        # Before they are joined: each of thousands of places may show a cell of 4 MiB.
        if sum(len(texts[name]) for name in pieces[1::2]) > MAX_ROW_BYTES:
            raise LineFault("", f"The prompt of this row has more than {MAX_ROW_BYTES // 1024**2} MiB.")
        pieces[1::2] = [texts[name] for name in pieces[1::2]]
        text = "".join(pieces)
        if not text.strip():
            raise LineFault(self.mapping.columns[0], "The prompt of this row is empty.", FaultKind.MISSING)
        return text


def _cell(value: Mapping[str, object], name: str) -> object:
    """The cell of a column, or a part of it. Raises `LineFault` where the row has none."""
    if name in value:
        return value[name]
    found: object = value
    for part in name.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isascii() and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise LineFault(
                name, f"The row has no {shown(name)}, which the mapping names.", FaultKind.MISSING
            )
    return found


def _text(cell: object, name: str) -> str:
    """ "" for an empty cell. Raises `LineFault` for a cell that is no text and no number."""
    if isinstance(cell, Mapping | list):
        sentence = f"{shown(name)} is {kind_of(cell)}: name a part of it, as {name}.0 or {name}.text."
        raise LineFault(name, sentence)
    return _shown_text(cell)


def _shown_text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    try:
        return orjson.dumps(cell).decode()
    except TypeError as error:
        raise LineFault("", f"The row cannot be kept as JSON: {str(error).lower()}.") from error
