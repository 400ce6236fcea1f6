"""One JSON object per line, as Postgres makes them: of each outcome, or the two files of a batch."""

from proctor.values.plain import with_line_feeds_only
from services.results.exports.export_form import LineForm
from services.results.exports.exported_lines import LineKind
from services.results.exports.exported_run import ExportedRun

_MEDIA_TYPE = "application/jsonl"


class JsonlFile:
    def begin(self) -> bytes:
        return b""

    def write(self, lines: bytes) -> bytes:
        return with_line_feeds_only(lines)

    def end(self) -> bytes:
        return b""


def _open(_: ExportedRun) -> JsonlFile:
    return JsonlFile()


def _batch_file(suffix: str, lines: LineKind) -> LineForm:
    return LineForm(suffix, _MEDIA_TYPE, _open, lines, is_of_one_task=True)


JSONL = LineForm(".jsonl", _MEDIA_TYPE, _open, is_resumable=True)
BATCH_OUTPUT = _batch_file("_output.jsonl", LineKind.BATCH_OUTPUT)
BATCH_ERRORS = _batch_file("_errors.jsonl", LineKind.BATCH_ERROR)
