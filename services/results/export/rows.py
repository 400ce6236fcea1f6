"""Rows of a run on their way into a file, and marks from which the file of a closed run can be resumed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey
from services.results.runs.run_plan import RunRecord

ROWS_VERSION = 3
"""Raise it with any change of what files show of rows: files that were begun before are not resumed."""


class Row(Protocol):
    """What the query of its kind read: values by the names of the columns."""

    def __getitem__(self, column: str, /) -> Any: ...  # columns have many types


class RowKind(Enum):
    """What the rows of a file are."""

    LINE = "an outcome as an object of JSON"
    RECORD = "an outcome, a column per field"
    BATCH_ANSWER = "an answer to a request of a batch"
    BATCH_ERROR = "a request of a batch without an answer"


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Rows of one task, as they count in the epoch that the record is in."""

    kind: RowKind
    record: RunRecord
    task_index: int


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Rows in order, and the key of the last one."""

    rows: Sequence[Row]
    last: OutcomeKey


@dataclass(frozen=True, slots=True)
class FileMark:
    """`first_byte`: bytes of the file up to and with the outcome `after`. `is_end`: it has no more."""

    first_byte: int = 0
    after: OutcomeKey = BEFORE_ALL
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file that stays as it is: the run, its epoch, and the tag of the content."""

    run_id: str
    epoch: int
    tag: str


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Bytes of a file and the mark behind them."""

    data: bytes
    mark: FileMark
