"""Rows of exports with all reasoning in a column of its own, also that in the text of the answer."""

import json
from collections.abc import Callable, Mapping

import orjson

from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import with_reasoning_apart
from proctor.values.reasoning.separate import may_have_reasoning
from services.results.export.exported_run import RowKind
from services.results.export.ports import ExportRow

# No text holds the first one as it stands here: its quotes are escaped. The others follow it at once.
_ANSWER, _REASONING, _FINISH_REASON = ',"answer":', ',"reasoning":', ',"finish_reason":'
_read_at = json.JSONDecoder().raw_decode


def _columns_apart(row: ExportRow) -> ExportRow:
    if not may_have_reasoning(row["answer"]):
        return row
    apart = with_reasoning_apart(Answer(row["answer"], row["finish_reason"], reasoning=row["reasoning"]))
    return {**row, "answer": apart.text, "reasoning": apart.reasoning}


def _line_apart(row: ExportRow) -> ExportRow:
    """Other members stay as Postgres wrote them."""
    line: str = row["line"]
    begin = line.index(_ANSWER) + len(_ANSWER)
    text, end = _read_at(line, begin)
    if not may_have_reasoning(text):
        return row
    reasoning, end = _read_at(line, end + len(_REASONING))
    finish_reason, _ = _read_at(line, end + len(_FINISH_REASON))
    apart = with_reasoning_apart(Answer(text, finish_reason, reasoning=reasoning))
    written = [orjson.dumps(value).decode() for value in (apart.text, apart.reasoning)]
    return {"line": f"{line[:begin]}{written[0]}{_REASONING}{written[1]}{line[end:]}"}


def _as_it_is(row: ExportRow) -> ExportRow:
    return row


REASONING_APART: Mapping[RowKind, Callable[[ExportRow], ExportRow]] = {
    RowKind.LINE: _line_apart,
    RowKind.COLUMNS: _columns_apart,
    RowKind.BATCH_ANSWER: _columns_apart,
    RowKind.BATCH_ERROR: _as_it_is,
}
