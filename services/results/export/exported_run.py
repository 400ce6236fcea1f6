"""An exported run: its facts, the rows of its files, and points from which a file can be resumed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.common.errors import DomainError, ErrorKind
from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey
from services.results.runs.run_plan import RunRecord
from services.results.scoring.compiled_scoring import metric_names
from services.results.summaries.run_summary import RunSummary

# Raise it when values are written in another way: files that were begun before are not resumed.
ROWS_VERSION = 4


class RunChanged(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_CHANGED"):
    """Run {run_id} was retried or deleted while it was exported; export it again when it is closed."""


class RowKind(Enum):
    """The kind of rows in a file."""

    LINE = "an outcome as an object of JSON"
    COLUMNS = "an outcome, a column per field"
    BATCH_ANSWER = "an answer to a request of a batch"
    BATCH_ERROR = "a request of a batch without an answer"


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Rows of one task, as they count in the epoch that the record is in."""

    kind: RowKind
    record: RunRecord
    task_index: int


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """`first_byte`: bytes of the file up to and with the outcome `after`. `is_end`: it has no more."""

    first_byte: int = 0
    after: OutcomeKey = BEFORE_ALL
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class ResumableFile:
    """A file that stays as it is: the run, its epoch, and the tag of the content."""

    run_id: str
    epoch: int
    tag: str


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Bytes of a file, and the point after them."""

    content: bytes
    point: ResumePoint


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """The error of samples that have no outcome."""

    code: str = "no_answer"
    message: str = "The run has no answer to this line."


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """`environment`: what the engines reported of themselves; `figures` None where the file shows none.

    `missing`: the error of samples without an outcome. `is_csv_safe`: no text of a table is a formula.
    `signing_key`: of the installation, for a file that is signed.
    """

    record: RunRecord
    is_partial: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    figures: RunSummary | None = None
    missing: MissingAnswer = field(default_factory=MissingAnswer)
    is_csv_safe: bool = False
    signing_key: Ed25519PrivateKey | None = None

    @property
    def summary(self) -> RunSummary:
        """The figures, of a format that shows them."""
        assert self.figures is not None
        return self.figures

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every key that a score of the run may have, in the order of the tasks."""
        names = (name for scoring in self.record.plan.scorings for name in metric_names(scoring))
        return tuple(dict.fromkeys(names))

    def file_stem(self, task: str = "") -> str:
        """The name of the file without its ending; that of a partial run says so."""
        facts = self.record.plan.facts
        words = [facts.title, task, facts.model, self.record.plan.run_id[:8]]
        words += ["partial"] if self.is_partial else []
        return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word) for word in words if word)
