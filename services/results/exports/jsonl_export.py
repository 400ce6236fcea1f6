"""One JSON object per outcome and line."""

from collections.abc import Sequence

import orjson

from services.results.exports.export_form import ExportForm
from services.results.exports.exported_run import ExportedRun, outcome_record
from services.results.outcomes.listed_outcome import ListedOutcome


class JsonlFile:
    def begin(self) -> bytes:
        return b""

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes:
        return b"".join(
            [orjson.dumps(outcome_record(one), option=orjson.OPT_APPEND_NEWLINE) for one in outcomes]
        )

    def end(self) -> bytes:
        return b""


def _open(_: ExportedRun) -> JsonlFile:
    return JsonlFile()


JSONL = ExportForm(".jsonl", "application/jsonl", _open)
