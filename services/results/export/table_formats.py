"""CSV (RFC 4180) and Parquet: a column per field and per metric."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from proctor.values.plain import csv_safe
from services.results.export.exported_columns import EXPORTED_COLUMNS, ColumnType
from services.results.export.exported_run import ExportedRun
from services.results.export.ports import ExportRow, RowFormat

SCORE_PREFIX = "score_"

_ARROW: Mapping[ColumnType, pa.DataType] = {
    ColumnType.TEXT: pa.string(),
    ColumnType.TEXTS: pa.list_(pa.string()),
    ColumnType.COUNT: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.FLAG: pa.bool_(),
    ColumnType.OBJECT: pa.string(),
    ColumnType.LOGPROBS: pa.list_(pa.float64()),
    # Whole, beside the columns of the metrics.
    ColumnType.SCORES: pa.string(),
}


def field_names(metrics: Sequence[str]) -> tuple[str, ...]:
    fields: list[str] = []
    for column in EXPORTED_COLUMNS:
        is_split = column.type is ColumnType.SCORES
        fields += [SCORE_PREFIX + metric for metric in metrics] if is_split else [column.name]
    return tuple(fields)


class CsvFile:
    def __init__(self, run: ExportedRun) -> None:
        self._metrics = run.metrics
        self._field = _csv_safe_field if run.is_csv_safe else _field
        self._columns = [
            (column.name, self._cell(column.type))
            for column in EXPORTED_COLUMNS
            if self._metrics or column.type is not ColumnType.SCORES
        ]

    def begin(self) -> bytes:
        return _row(map(self._field, field_names(self._metrics))).encode()

    def write(self, rows: Sequence[ExportRow]) -> bytes:
        columns = self._columns
        return "".join([_row([cell(row[name]) for name, cell in columns]) for row in rows]).encode()

    def end(self) -> bytes:
        return b""

    def _cell(self, kind: ColumnType) -> Callable[[Any], str]:
        """Writes a value of the column; of scores the cells of all metrics."""
        if kind is ColumnType.SCORES:
            return self._score_cells
        is_json = kind in (ColumnType.OBJECT, ColumnType.LOGPROBS)
        return (lambda text: self._field(_compact(text))) if is_json else self._field

    def _score_cells(self, text: str) -> str:
        scores = orjson.loads(text)
        return ",".join([self._field(scores.get(metric)) for metric in self._metrics])


def _row(cells: Iterable[str]) -> str:
    return ",".join(cells) + "\r\n"


def _compact(text: str | None) -> str | None:
    """A text of JSON without white space."""
    return text if text is None or len(text) <= len("[]") else orjson.dumps(orjson.loads(text)).decode()


def _field(value: object) -> str:
    """A field as the csv module writes it, three times faster for long texts."""
    if value is None:
        return ""
    text = orjson.dumps(value).decode() if isinstance(value, (list, dict)) else str(value)
    if '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return f'"{text}"' if "," in text or "\n" in text or "\r" in text else text


def _csv_safe_field(value: object) -> str:
    return _field(csv_safe(value) if isinstance(value, str) else value)


CSV = RowFormat(".csv", "text/csv; charset=utf-8", CsvFile, is_resumable=True)


class ParquetFile:
    def __init__(self, run: ExportedRun) -> None:
        self._metrics = run.metrics
        types = {column.name: column.type for column in EXPORTED_COLUMNS}
        self._plain = [name for name, kind in types.items() if kind not in _READ]
        self._read = [(name, _READ[kind]) for name, kind in types.items() if kind in _READ]
        names = (*field_names(self._metrics), "scores")
        self._schema = pa.schema([(name, _arrow_type(types.get(name))) for name in names])
        self._buffer = io.BytesIO()
        self._writer: pq.ParquetWriter | None = None

    def begin(self) -> bytes:
        self._writer = pq.ParquetWriter(self._buffer, self._schema, compression="zstd")
        return self._written()

    def write(self, rows: Sequence[ExportRow]) -> bytes:
        assert self._writer is not None
        self._writer.write_table(pa.Table.from_pylist([self._values(row) for row in rows], self._schema))
        return self._written()

    def end(self) -> bytes:
        assert self._writer is not None
        self._writer.close()
        return self._written()

    def _values(self, row: ExportRow) -> Mapping[str, object]:
        scores = orjson.loads(row["scores"])
        return {
            **{name: row[name] for name in self._plain},
            **{name: read(row[name]) for name, read in self._read},
            **{SCORE_PREFIX + metric: _number(scores.get(metric)) for metric in self._metrics},
        }

    def _written(self) -> bytes:
        """Bytes that the writer has appended since the last call."""
        piece = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return piece


def _arrow_type(kind: ColumnType | None) -> pa.DataType:
    """None is the type of a metric."""
    return pa.float64() if kind is None else _ARROW[kind]


def _numbers(text: str) -> list[float | None]:
    return [_number(number) for number in orjson.loads(text)]


def _number(score: object) -> float | None:
    return float(score) if isinstance(score, int | float) else None


# Of the other types a value is written as it is.
_READ: Mapping[ColumnType, Callable[[Any], object]] = {
    ColumnType.OBJECT: _compact,
    ColumnType.LOGPROBS: _numbers,
    ColumnType.SCORES: _compact,
}

PARQUET = RowFormat(".parquet", "application/vnd.apache.parquet", ParquetFile)
