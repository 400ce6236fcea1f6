"""A Parquet file: one row per outcome, a row group per chunk, so that nothing is held.

A column per metric has the scores that are one number; `scores` has all of them, as JSON text, and
`body` what a provider answered.
"""

import io
from collections.abc import Mapping

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from services.results.exports.export_form import LineForm
from services.results.exports.exported_run import ExportedRun
from services.results.exports.score_fields import SCORE_PREFIX, field_names

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
