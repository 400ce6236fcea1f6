"""Lines of a run as Postgres makes them: what is asked for, and what comes at a time."""

from dataclasses import dataclass
from enum import Enum

from services.results.outcomes.outcome import OutcomeKey
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
