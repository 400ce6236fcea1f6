"""Lines of export files, and marks from which the file of a closed run can be resumed."""

from dataclasses import dataclass
from enum import Enum

from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey
from services.results.runs.run_plan import RunRecord

LINES_VERSION = 2
"""Raise it with any change of what lines look like: files that were begun before are not gone on with."""


class LineKind(Enum):
    """What a line is of: an outcome, or a request of a batch with or without an answer."""

    OUTCOME = "outcome"
    BATCH_OUTPUT = "batch output"
    BATCH_ERROR = "batch error"


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """What an error file says of samples that have no outcome."""

    code: str = "no_answer"
    message: str = "The run has no answer to this line."


@dataclass(frozen=True, slots=True)
class WantedLines:
    """Lines of one task, as they count in the epoch that the record is in."""

    kind: LineKind
    record: RunRecord
    task_index: int
    missing: MissingAnswer = MissingAnswer()


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Whole lines in UTF-8, and the last outcome among them."""

    lines: bytes
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
class FilePiece:
    """Bytes of a file and the mark behind them."""

    data: bytes
    mark: FileMark
