"""CSV (RFC 4180) and Parquet: a column per field and per metric."""

import io
from collections.abc import Iterable, Mapping, Sequence

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from proctor.values.plain import csv_safe
from proctor.values.usage import USAGE_NAMES
from services.results.export.exported_run import ExportedRun
from services.results.export.ports import ExportRow, RowFormat

SCORE_PREFIX = "score_"

_BEFORE_JSON = (
    "task",
    "doc_id",
    "row_id",
    "rollout",
    "status",
    "prompt",
    "choices",
    "target",
    "prediction",
    "answer",
    "finish_reason",
)
# Read as texts of JSON.
_JSON = ("choice_logprobs", "body")
_BEHIND_JSON = ("failure_class", "failure_message")
_BEHIND_SCORES = (
    *USAGE_NAMES,
    "total_seconds",
    "queue_seconds",
    "first_token_seconds",
    "between_tokens_seconds",
    "is_reused",
    "digest",
)

_TEXT, _LONG, _DOUBLE = pa.string(), pa.int64(), pa.float64()
_TYPES: Mapping[str, pa.DataType] = {
    "doc_id": _LONG,
    "rollout": _LONG,
    "choices": pa.list_(_TEXT),
    "choice_logprobs": pa.list_(_DOUBLE),
    **dict.fromkeys(USAGE_NAMES, _LONG),
    "total_seconds": _DOUBLE,
    "queue_seconds": _DOUBLE,
    "first_token_seconds": _DOUBLE,
    "between_tokens_seconds": _DOUBLE,
    "is_reused": pa.bool_(),
}


def field_names(metrics: Sequence[str]) -> tuple[str, ...]:
    scores = (SCORE_PREFIX + metric for metric in metrics)
    return (*_BEFORE_JSON, *_JSON, *_BEHIND_JSON, *scores, *_BEHIND_SCORES)


class CsvFile:
    def __init__(self, run: ExportedRun) -> None:
        self._metrics = run.metrics
        self._names = field_names(run.metrics)
        self._field = _csv_safe_field if run.is_csv_safe else _field

    def begin(self) -> bytes:
        return self._row(self._names).encode()

    def write(self, rows: Sequence[ExportRow]) -> bytes:
        return "".join([self._row(self._values(row)) for row in rows]).encode()

    def end(self) -> bytes:
        return b""

    def _row(self, values: Iterable[object]) -> str:
        return ",".join(map(self._field, values)) + "\r\n"

    def _values(self, row: ExportRow) -> Iterable[object]:
        scores = orjson.loads(row["scores"])
        return (
            *(row[name] for name in _BEFORE_JSON),
            *(_compact(row[name]) for name in _JSON),
            *(row[name] for name in _BEHIND_JSON),
            *(scores.get(metric) for metric in self._metrics),
            *(row[name] for name in _BEHIND_SCORES),
        )


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
        names = (*field_names(self._metrics), "scores")
        self._schema = pa.schema([(name, _type_of(name)) for name in names])
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
            **{name: row[name] for name in (*_BEFORE_JSON, *_BEHIND_JSON, *_BEHIND_SCORES)},
            **{SCORE_PREFIX + metric: _number(scores.get(metric)) for metric in self._metrics},
            "choice_logprobs": [_number(logprob) for logprob in orjson.loads(row["choice_logprobs"])],
            "body": _compact(row["body"]),
            "scores": _compact(row["scores"]),
        }

    def _written(self) -> bytes:
        """Bytes that the writer has appended since the last call."""
        piece = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return piece


def _type_of(name: str) -> pa.DataType:
    return _DOUBLE if name.startswith(SCORE_PREFIX) else _TYPES.get(name, _TEXT)


def _number(score: object) -> float | None:
    return float(score) if isinstance(score, int | float) else None


PARQUET = RowFormat(".parquet", "application/vnd.apache.parquet", ParquetFile)
