"""How CSV files are written, and the types of their columns where pandas would infer them."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# What pandas.read_csv takes for no value, whether or not it is in quotes.
_MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
# Python reads no more digits than some 4,300.
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*", re.ASCII)
# Possessive: a cell of a million digits that ends otherwise is read once.
_NUMBER = re.compile(r"\s*+[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?\s*", re.ASCII)
_MAX_WHOLE = 2**63 - 1

Cell = str | int | float | bool | None
_Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CsvForm:
    """`column_names` are those of a file without a header, or replace its header.

    `infers_types`: columns of numbers and truth values are such, and empty cells null; else all is text.
    """

    column_names: tuple[str, ...] = ()
    has_header: bool = True
    delimiter: str = ""
    infers_types: bool = False


TEXT_WITH_HEADER = CsvForm()


def typed_rows(read: Callable[[], Iterator[_Row]]) -> Iterator[_Row]:
    """Reads the rows twice: a column has the type that all of its cells have."""
    possible: dict[str, list[_Type]] = {}
    with_gaps: set[str] = set()
    for row in read():
        for name, cell in row.items():
            if cell in _MISSING:
                with_gaps.add(name)
                possible.setdefault(name, list(_TYPES))
                continue
            types = possible.setdefault(name, list(_TYPES))
            if types:
                possible[name] = [each for each in types if each.fits(str(cell))]
    found = {name: _type(types, has_gaps=name in with_gaps) for name, types in possible.items()}
    for row in read():
        yield {name: _cell(str(cell), found[name]) for name, cell in row.items()}


@dataclass(frozen=True, slots=True)
class _Type:
    fits: Callable[[str], bool]
    value: Callable[[str], Cell]


def _is_whole(cell: str) -> bool:
    return bool(_WHOLE.fullmatch(cell)) and abs(int(cell)) <= _MAX_WHOLE


def _is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell)) and math.isfinite(float(cell))


_INTEGERS = _Type(_is_whole, int)
_FLOATS = _Type(_is_number, float)
_TRUTHS = _Type(_TRUTH.__contains__, _TRUTH.__getitem__)
_TEXTS = _Type(lambda _: True, str)
_TYPES: Sequence[_Type] = (_INTEGERS, _FLOATS, _TRUTHS)


def _type(types: Sequence[_Type], *, has_gaps: bool) -> _Type:
    """Whole numbers with gaps are floats there, and truth values with gaps texts."""
    usable = [each for each in types if not (has_gaps and each in (_INTEGERS, _TRUTHS))]
    return usable[0] if usable else _TEXTS


def _cell(cell: str, kind: _Type) -> Cell:
    return None if cell in _MISSING else kind.value(cell)


def csv_form(written: Mapping[str, object]) -> CsvForm:
    """The key `csv` of a data set, as the schema has it."""
    names = written.get("column_names", ())
    assert isinstance(names, list | tuple)
    return CsvForm(
        tuple(map(str, names)),
        bool(written.get("header", not names)),
        str(written.get("delimiter", "")),
        bool(written.get("infer_types", False)),
    )
