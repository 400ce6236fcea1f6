"""What an export format is, and the facts of a run that its files show."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.results.export.completion_lines import MissingAnswer
from services.results.export.rows import Row, RowKind
from services.results.outcomes.outcome import ListedOutcome
from services.results.runs.run_plan import RunRecord
from services.results.scoring.compiled_scoring import metric_names
from services.results.summaries.run_summary import RunSummary


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """`environment`: what the engines reported of themselves; `figures` None where the file shows none.

    `missing`: the error of samples without an outcome.
    """

    record: RunRecord
    is_partial: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    figures: RunSummary | None = None
    missing: MissingAnswer = field(default_factory=MissingAnswer)

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
        words = [facts.dataset_name or facts.suite, task, facts.model, self.record.plan.run_id[:8]]
        words += ["partial"] if self.is_partial else []
        return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word) for word in words if word)


class RowWriter(Protocol):
    """Writes one file of rows of a kind."""

    def begin(self) -> bytes: ...

    def write(self, rows: Sequence[Row]) -> bytes: ...

    def end(self) -> bytes: ...


class OutcomeWriter(Protocol):
    """Writes one file of outcomes beside their samples."""

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class RowFormat:
    """`rows`: what the file has a line for; None: only figures. `has_figures`: it shows the summary.

    `is_resumable`: its writer keeps nothing from one chunk to the next, so that a download can be
    resumed.
    """

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], RowWriter]
    rows: RowKind | None = RowKind.RECORD
    has_figures: bool = False
    is_resumable: bool = False
    is_of_one_task: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeFormat:
    """A format of one task that needs more of it than rows."""

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], OutcomeWriter]
    is_of_one_task: bool = True


ExportFormat = RowFormat | OutcomeFormat
