"""A table with a header (RFC 4180): a column per field and per metric; what has parts is written as JSON."""

import csv
import io
from collections.abc import Mapping, Sequence

import orjson

from services.results.exports.export_form import LineForm
from services.results.exports.exported_run import ExportedRun
from services.results.exports.score_fields import SCORE_PREFIX, field_names


class CsvFile:
    def __init__(self, run: ExportedRun) -> None:
        self._metrics = run.metrics
        self._names = field_names(self._metrics)

    def begin(self) -> bytes:
        return _lines([self._names])

    def write(self, lines: bytes) -> bytes:
        return _lines([self._cells(orjson.loads(line)) for line in lines.splitlines()])

    def end(self) -> bytes:
        return b""

    def _cells(self, record: Mapping[str, object]) -> list[object]:
        scores = record["scores"]
        assert isinstance(scores, Mapping)
        flat = {**record, **{SCORE_PREFIX + metric: scores.get(metric) for metric in self._metrics}}
        return [_cell(flat[name]) for name in self._names]


def _cell(value: object) -> object:
    if isinstance(value, list | dict):
        return orjson.dumps(value).decode()
    return value


def _lines(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


CSV = LineForm(".csv", "text/csv; charset=utf-8", CsvFile, is_resumable=True)
