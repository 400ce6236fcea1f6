"""The columns of an exported outcome, in the order of every file.

Each is a column of the view outcome_records. Queries, lines of JSON and tables are made from this list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proctor.values.usage import USAGE_NAMES


class ColumnType(Enum):
    """Values of the view. Only numbers and objects may be null there."""

    TEXT = "text"
    TEXTS = "an array of texts"
    COUNT = "a whole number"
    NUMBER = "a floating-point number"
    FLAG = "true or false"
    OBJECT = "an object of JSON, as its row or its provider wrote it"
    LOGPROBS = "a JSON array of numbers and nulls"
    SCORES = "a JSON object of metrics; tables have a column for each of them"


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    name: str
    type: ColumnType = ColumnType.TEXT


EXPORTED_COLUMNS: Final = (
    ExportedColumn("task"),
    ExportedColumn("doc_id", ColumnType.COUNT),
    ExportedColumn("row_id"),
    ExportedColumn("rollout", ColumnType.COUNT),
    ExportedColumn("status"),
    ExportedColumn("prompt"),
    ExportedColumn("request", ColumnType.OBJECT),
    ExportedColumn("choices", ColumnType.TEXTS),
    ExportedColumn("target"),
    ExportedColumn("prediction"),
    ExportedColumn("answer"),
    ExportedColumn("reasoning"),
    ExportedColumn("finish_reason"),
    ExportedColumn("choice_logprobs", ColumnType.LOGPROBS),
    ExportedColumn("body", ColumnType.OBJECT),
    ExportedColumn("failure_class"),
    ExportedColumn("failure_message"),
    ExportedColumn("scores", ColumnType.SCORES),
    *(ExportedColumn(name, ColumnType.COUNT) for name in USAGE_NAMES),
    ExportedColumn("total_seconds", ColumnType.NUMBER),
    ExportedColumn("queue_seconds", ColumnType.NUMBER),
    ExportedColumn("first_token_seconds", ColumnType.NUMBER),
    ExportedColumn("between_tokens_seconds", ColumnType.NUMBER),
    ExportedColumn("is_reused", ColumnType.FLAG),
    ExportedColumn("digest"),
)

# JSON_SCALAR writes what to_json would, and looks up no type for each value: so a row takes Postgres 9 µs. By
# row_to_json it takes 17 µs, and whole times have no point.
_AS_JSON: Mapping[ColumnType, str] = {
    ColumnType.TEXT: "JSON_SCALAR({})",
    ColumnType.TEXTS: "to_json({})",
    ColumnType.COUNT: "{}",
    ColumnType.NUMBER: "coalesce(json_number({}), 'null')",
    ColumnType.FLAG: "{}::text",
    ColumnType.OBJECT: "coalesce({}::text, 'null')",
    ColumnType.LOGPROBS: "{}",
    ColumnType.SCORES: "{}",
}


def _line() -> str:
    members = [f""""{one.name}":', {_AS_JSON[one.type].format(one.name)}""" for one in EXPORTED_COLUMNS]
    return "concat('{" + ", ',".join(members) + ", '}')"


# Parts of `queries.sql`, by the names that stand there in braces.
SQL_PARTS: Mapping[str, str] = {
    "exported_line": _line(),
    "exported_columns": ", ".join(one.name for one in EXPORTED_COLUMNS),
    "usage_columns": ", ".join(USAGE_NAMES),
}
