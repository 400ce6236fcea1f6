"""A table with a header (RFC 4180): a column per field and per metric; what has parts is written as JSON."""

from collections.abc import Iterable, Mapping

import orjson

from services.results.exports.export_form import LineForm
from services.results.exports.exported_run import ExportedRun
from services.results.exports.score_fields import SCORE_PREFIX, field_names


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
