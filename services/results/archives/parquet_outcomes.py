"""Outcomes as Parquet: a column per column of the table, in row groups that are read alone."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from proctor.values.outcome import FailureClass, OutcomeStatus
from services.results.archives.archive import OutcomeRow, Row, Selection
from services.results.archives.ports import StoredRow
from services.results.outcomes.outcome import OutcomeKey

# A page of answers decodes one or two groups.
GROUP_OUTCOMES = 500
_TIME = pa.timestamp("us", tz="UTC")
# The columns of the table in their order, without the run, which is that of the file. JSON is text.
SCHEMA = pa.schema(
    [
        pa.field("sample", pa.int64(), nullable=False),
        pa.field("rollout", pa.int32(), nullable=False),
        pa.field("task_index", pa.int16(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("attempt", pa.int32(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("failure_class", pa.string()),
        pa.field("failure_message", pa.string(), nullable=False),
        pa.field("answer_text", pa.string(), nullable=False),
        pa.field("reasoning", pa.string(), nullable=False),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("choices", pa.string(), nullable=False),
        pa.field("prediction", pa.string(), nullable=False),
        pa.field("scores", pa.string(), nullable=False),
        pa.field("prompt_tokens", pa.int64(), nullable=False),
        pa.field("completion_tokens", pa.int64(), nullable=False),
        pa.field("cached_tokens", pa.int64(), nullable=False),
        pa.field("reasoning_tokens", pa.int64(), nullable=False),
        pa.field("total_seconds", pa.float64(), nullable=False),
        pa.field("queue_seconds", pa.float64()),
        pa.field("first_token_seconds", pa.float64()),
        pa.field("between_tokens_seconds", pa.float64()),
        pa.field("body_json", pa.string(), nullable=False),
        pa.field("is_reused", pa.bool_(), nullable=False),
        pa.field("recorded_at", _TIME, nullable=False),
    ]
)
# What may be long, with the value that stands for one that is not read.
LONG: Mapping[str, str] = {
    "failure_message": "",
    "answer_text": "",
    "reasoning": "",
    "choices": "[]",
    "prediction": "",
    "scores": "{}",
    "body_json": "",
}
# Of an outcome that is weighed by them.
_WEIGHED = ("answer_text", "reasoning", "body_json")
_STATUSES = {status.value: status for status in OutcomeStatus}
_CLASSES: Mapping[str | None, FailureClass | None] = {
    None: None,
    **{failure_class.value: failure_class for failure_class in FailureClass},
}


def write_parquet(run_id: str, rows: Sequence[StoredRow]) -> bytes:
    """A file of rows of the table. It has an id of its own: no two are the same, nor are their digests."""
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA]
    about = {"run_id": run_id, "file_id": uuid4().hex}
    table = pa.Table.from_arrays(columns, schema=SCHEMA.with_metadata(about))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=GROUP_OUTCOMES, compression="zstd")
    return buffer.getvalue()


def read_parquet(content: bytes, run_id: str, selection: Selection) -> Iterator[tuple[OutcomeRow, int]]:
    """Rows of the table that are selected, in order, each with the bytes of its texts.

    The limits of the selection are the caller's, who stops: the rest is not read.
    """
    file = pq.ParquetFile(io.BytesIO(content))
    left_out = () if selection.texts is None else set(LONG) - set(selection.texts)
    names = [name for name in SCHEMA.names if name not in left_out]
    for group in range(file.num_row_groups):
        if selection.may_have(*_samples_of(file, group)):
            yield from _selected(file.read_row_group(group, names), run_id, selection)


def _samples_of(file: pq.ParquetFile, group: int) -> tuple[OutcomeKey, OutcomeKey]:
    """Keys around those of a group."""
    statistics = file.metadata.row_group(group).column(0).statistics
    return (statistics.min, -1), (statistics.max, 2**31)


def _selected(group: pa.Table, run_id: str, selection: Selection) -> Iterator[tuple[OutcomeRow, int]]:
    keys = zip(group["sample"].to_pylist(), group["rollout"].to_pylist(), strict=True)
    indexes = [index for index, key in enumerate(keys) if selection.has(key)]
    # Arrow takes no empty list: it has no type.
    if not indexes:
        return
    # Texts become objects only of rows that are wanted.
    table = group if len(indexes) == group.num_rows else group.take(indexes)
    columns = [_values(table, name) for name in SCHEMA.names]
    by_name = dict(zip(SCHEMA.names, columns, strict=True))
    about = zip(
        by_name["status"], by_name["epoch"], by_name["rollout"], by_name["failure_class"], strict=False
    )
    rows: Iterable[OutcomeRow] = zip(repeat(run_id), *columns, strict=False)
    weighed = zip(*(by_name[name] for name in _WEIGHED), strict=False)
    for row, (status, epoch, rollout, failure_class), texts in zip(rows, about, weighed, strict=False):
        if selection.wanted is not None and not selection.wanted(
            Row(
                status=_STATUSES[status],
                epoch=epoch,
                rollout=rollout,
                failure_class=_CLASSES[failure_class],
            )
        ):
            continue
        yield row, sum(len(text.encode()) for text in texts if text)


def _values(table: pa.Table, name: str) -> Sequence[Any]:
    if name not in table.column_names:
        return [LONG[name]] * table.num_rows
    values: list[Any] = table[name].to_pylist()
    return values
