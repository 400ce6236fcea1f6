"""Stands in for the package `datasets` inside the sandbox: rows in memory, by the package's own rules.

A function gets a fresh copy of a row.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

Row = dict[str, Any]
_BATCH_ROWS = 1000
_PLAIN = (str, int, float, type(None))


class Feature:
    """Type of a column. The names of classes are unknown: rows come without the types of the hub."""

    @property
    def names(self) -> list[str]:
        raise NotImplementedError("rows come without the names of their classes (features[…].names)")


class Dataset:
    """`names` are the columns in order; a row without one of them has None there."""

    def __init__(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> None:
        self._rows = rows
        self._names = list(dict.fromkeys(name for row in rows for name in row) if names is None else names)

    @classmethod
    def from_list(cls, mapping: Sequence[Row], **_: object) -> "Dataset":
        names = list(mapping[0]) if mapping else []
        return cls([{name: row.get(name) for name in names} for row in mapping], names)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Sequence[Any]], **_: object) -> "Dataset":
        names = list(mapping)
        return cls(_rows_of(mapping), names)

    @classmethod
    def from_generator(cls, generator: Callable[..., Iterable[Row]], **options: Any) -> "Dataset":
        return cls.from_list(list(generator(**options.get("gen_kwargs", {}))))

    @property
    def column_names(self) -> list[str]:
        return list(self._names)

    @property
    def features(self) -> dict[str, Feature]:
        return {name: Feature() for name in self._names}

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    @property
    def num_columns(self) -> int:
        return len(self._names)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._rows), len(self._names)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return (self._row(row) for row in self._rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(f"Column {key} not in the dataset. Current columns: {self._names}")
            return [_fresh(row.get(key)) for row in self._rows]
        if isinstance(key, slice):
            return _columns([self._row(row) for row in self._rows[key]], self._names)
        if isinstance(key, Iterable):
            return _columns([self._row(self._rows[index]) for index in key], self._names)
        return self._row(self._rows[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"the rows of a task have no {name}() here; use map, filter or select")

    def map(self, function: Callable[..., Any] | None = None, **options: Any) -> "Dataset":
        """Options about speed and caches have no effect."""
        if function is None:
            return self
        removed = set(_listed(options.get("remove_columns")))
        if options.get("batched"):
            return self._mapped_batches(function, options, removed)
        rows: list[Row] = []
        for index, row in enumerate(self._rows):
            given = self._row(row)
            # As there: what a function changes within a cell stays, other cells that it sets do not.
            cells = dict(given)
            made = function(*_arguments(given, [index], options), **_given(options))
            if made is None:
                rows.append(row)
                continue
            if not isinstance(made, Mapping):
                raise TypeError(f"map: the function returned {type(made).__name__}, not a dict or None")
            rows.append({**{name: cell for name, cell in cells.items() if name not in removed}, **made})
        kept = [name for name in self._names if name not in removed]
        return Dataset(rows, list(dict.fromkeys([*kept, *(name for row in rows for name in row)])))

    def _mapped_batches(self, function: Callable[..., Any], options: Row, removed: set[str]) -> "Dataset":
        size = options.get("batch_size") or _BATCH_ROWS
        kept = [name for name in self._names if name not in removed]
        rows: list[Row] = []
        for start in range(0, len(self._rows), size):
            batch = _columns([self._row(row) for row in self._rows[start : start + size]], self._names)
            indices = [list(range(start, min(start + size, len(self._rows))))]
            cells = dict(batch)
            made = function(*_arguments(batch, indices, options), **_given(options))
            rows += _rows_of({**{name: cells[name] for name in kept}, **(made or {})})
        return Dataset(rows, None if rows else kept)

    def filter(self, function: Callable[..., Any] | None = None, **options: Any) -> "Dataset":
        if function is None:
            return self
        if options.get("batched"):
            indices = [list(range(len(self._rows)))]
            marks = function(*_arguments(self[:], indices, options), **_given(options))
            kept = [row for row, mark in zip(self._rows, marks, strict=True) if mark]
        else:
            kept = [
                row
                for index, row in enumerate(self._rows)
                if function(*_arguments(self._row(row), [index], options), **_given(options))
            ]
        return Dataset(kept, self._names)

    def select(self, indices: Iterable[int], **_: object) -> "Dataset":
        return Dataset([self._rows[index] for index in indices], self._names)

    def take(self, n: int) -> "Dataset":
        return Dataset(self._rows[:n], self._names)

    def skip(self, n: int) -> "Dataset":
        return Dataset(self._rows[n:], self._names)

    def shuffle(self, seed: int | None = None, **_: object) -> "Dataset":
        """The order is that of `datasets`, which draws it with numpy. Without a seed it is that of 0."""
        import numpy as np  # noqa: PLC0415  # a package of the operator's list

        return self.select(np.random.default_rng(seed or 0).permutation(len(self._rows)).tolist())

    def sort(self, column_names: str | Sequence[str], reverse: bool = False, **_: object) -> "Dataset":  # noqa: FBT001, FBT002  # as there
        names = _listed(column_names)
        rows = sorted(self._rows, key=lambda row: [row[name] for name in names], reverse=reverse)
        return Dataset(rows, self._names)

    def unique(self, column: str) -> list[Any]:
        return list(dict.fromkeys(row.get(column) for row in self._rows))

    def add_column(self, name: str, column: Sequence[Any], **_: object) -> "Dataset":
        rows = [{**row, name: cell} for row, cell in zip(self._rows, column, strict=True)]
        return Dataset(rows, [*self._names, name])

    def add_item(self, item: Row, **_: object) -> "Dataset":
        return Dataset([*self._rows, item], self._names)

    def remove_columns(self, column_names: str | Sequence[str], **_: object) -> "Dataset":
        removed = _listed(column_names)
        return self.select_columns([name for name in self._names if name not in removed])

    def select_columns(self, column_names: str | Sequence[str], **_: object) -> "Dataset":
        names = _listed(column_names)
        return Dataset([{name: row.get(name) for name in names} for row in self._rows], names)

    def rename_column(self, original_column_name: str, new_column_name: str, **_: object) -> "Dataset":
        return self.rename_columns({original_column_name: new_column_name})

    def rename_columns(self, column_mapping: Mapping[str, str], **_: object) -> "Dataset":
        names = [column_mapping.get(name, name) for name in self._names]
        rows = [
            {new: row.get(old) for old, new in zip(self._names, names, strict=True)} for row in self._rows
        ]
        return Dataset(rows, names)

    def to_list(self) -> list[Row]:
        return list(self)

    def to_dict(self, **_: object) -> dict[str, list[Any]]:
        return _columns(self.to_list(), self._names)

    def flatten_indices(self, **_: object) -> "Dataset":
        return self

    def with_format(self, *_: object, **__: object) -> "Dataset":
        return self

    def _row(self, row: Row) -> Row:
        return {name: _fresh(row.get(name)) for name in self._names}


def concatenate_datasets(dsets: Sequence[Dataset], **_: object) -> Dataset:
    return Dataset([row for one in dsets for row in one])


class DatasetDict(dict[str, Dataset]):
    """Splits by their names."""


class Features(dict[str, Any]):
    """Types of columns, which have no effect: they are those of JSON."""


class ColumnType:
    """One of them."""

    def __init__(self, *_: object, **__: object) -> None:
        """Whatever is said of it."""


def stand_in(load_dataset: Callable[..., Any]) -> ModuleType:
    """The module that an `import datasets` gets."""
    module = ModuleType("datasets")
    module.__version__ = "4.0.0"  # type: ignore[attr-defined]  # code asks for it
    own = (Dataset, DatasetDict, Features, concatenate_datasets, load_dataset)
    module.__dict__.update({each.__name__: each for each in own})
    module.__dict__.update(dict.fromkeys(("Value", "Sequence", "ClassLabel"), ColumnType))
    sys.modules["datasets"] = module
    return module


def _fresh(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}
    return value


def _rows_of(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _columns(rows: Sequence[Row], names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}


def _arguments(row: Row, index: list[Any], options: Row) -> list[Any]:
    columns = _listed(options.get("input_columns"))
    given = [row[name] for name in columns] if columns else [row]
    return given + (index if options.get("with_indices") else [])


def _given(options: Row) -> Row:
    return options.get("fn_kwargs") or {}


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())
