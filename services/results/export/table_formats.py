"""CSV (RFC 4180) and Parquet: a column per field and per metric."""

import io
from collections.abc import Iterable, Mapping, Sequence

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from services.results.export.format import ExportedRun, LineForm

SCORE_PREFIX = "score_"

_BEFORE_SCORES = (
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
    "choice_logprobs",
    "body",
    "failure_class",
    "failure_message",
)
_AFTER_SCORES = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_seconds",
    "queue_seconds",
    "first_token_seconds",
    "between_tokens_seconds",
    "is_reused",
    "digest",
)


def field_names(metrics: Sequence[str]) -> tuple[str, ...]:
    return (*_BEFORE_SCORES, *(SCORE_PREFIX + metric for metric in metrics), *_AFTER_SCORES)


class CsvFile:
    def __init__(self, run: ExportedRun) -> None:
        self._metrics = {SCORE_PREFIX + metric: metric for metric in run.metrics}
        self._names = field_names(run.metrics)

    def begin(self) -> bytes:
        return _row(self._names).encode()

    def write(self, lines: bytes) -> bytes:
        return "".join([_row(self._values(orjson.loads(line))) for line in lines.splitlines()]).encode()

    def end(self) -> bytes:
        return b""

    def _values(self, record: Mapping[str, object]) -> Iterable[object]:
        scores = record["scores"]
        assert isinstance(scores, Mapping)
        flat = {**record, **{name: scores.get(metric) for name, metric in self._metrics.items()}}
        return map(flat.__getitem__, self._names)


def _row(values: Iterable[object]) -> str:
    return ",".join(map(_field, values)) + "\r\n"


def _field(value: object) -> str:
    """As the csv module writes it, which looks at long texts letter by letter and takes thrice the time."""
    if value is None:
        return ""
    text = orjson.dumps(value).decode() if isinstance(value, (list, dict)) else str(value)
    if '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return f'"{text}"' if "," in text or "\n" in text or "\r" in text else text


CSV = LineForm(".csv", "text/csv; charset=utf-8", CsvFile, is_resumable=True)


SCORES = "scores"

_TEXT, _LONG, _DOUBLE = pa.string(), pa.int64(), pa.float64()
_TYPES: Mapping[str, pa.DataType] = {
    "doc_id": _LONG,
    "rollout": _LONG,
    "choices": pa.list_(_TEXT),
    "choice_logprobs": pa.list_(_DOUBLE),
    "prompt_tokens": _LONG,
    "completion_tokens": _LONG,
    "cached_tokens": _LONG,
    "reasoning_tokens": _LONG,
    "total_seconds": _DOUBLE,
    "queue_seconds": _DOUBLE,
    "first_token_seconds": _DOUBLE,
    "between_tokens_seconds": _DOUBLE,
    "is_reused": pa.bool_(),
}


class ParquetFile:
    def __init__(self, run: ExportedRun) -> None:
        self._metrics = run.metrics
        names = (*field_names(self._metrics), SCORES)
        self._schema = pa.schema([(name, _type_of(name)) for name in names])
        self._buffer = io.BytesIO()
        self._writer: pq.ParquetWriter | None = None

    def begin(self) -> bytes:
        self._writer = pq.ParquetWriter(self._buffer, self._schema, compression="zstd")
        return self._written()

    def write(self, lines: bytes) -> bytes:
        assert self._writer is not None
        rows = [self._row(orjson.loads(line)) for line in lines.splitlines()]
        self._writer.write_table(pa.Table.from_pylist(rows, self._schema))
        return self._written()

    def end(self) -> bytes:
        assert self._writer is not None
        self._writer.close()
        return self._written()

    def _row(self, record: Mapping[str, object]) -> Mapping[str, object]:
        scores, logprobs, body = record[SCORES], record["choice_logprobs"], record["body"]
        assert isinstance(scores, Mapping)
        assert isinstance(logprobs, list)
        return {
            **record,
            **{SCORE_PREFIX + metric: _number(scores.get(metric)) for metric in self._metrics},
            "choice_logprobs": [_number(logprob) for logprob in logprobs],
            "body": orjson.dumps(body).decode() if body else None,
            SCORES: orjson.dumps(scores).decode(),
        }

    def _written(self) -> bytes:
        """What the writer has made since; it only ever appends."""
        piece = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return piece


def _type_of(name: str) -> pa.DataType:
    return _DOUBLE if name.startswith(SCORE_PREFIX) else _TYPES.get(name, _TEXT)


def _number(score: object) -> float | None:
    return float(score) if isinstance(score, int | float) else None


PARQUET = LineForm(".parquet", "application/vnd.apache.parquet", ParquetFile)
