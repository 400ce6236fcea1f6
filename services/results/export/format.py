"""What an export format is, and the facts of a run that its files show."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.results.export.lines import LineKind
from services.results.outcomes.outcome import ListedOutcome
from services.results.runs.run_plan import RunRecord
from services.results.scoring.compiled_scoring import metric_names
from services.results.summaries.run_summary import RunSummary


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """`environment` is what the engines said of themselves; `figures` None where the file shows none."""

    record: RunRecord
    is_partial: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    figures: RunSummary | None = None

    @property
    def summary(self) -> RunSummary:
        """The figures, of a form that shows them."""
        assert self.figures is not None
        return self.figures

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every key that a score of the run may have, in the order of the tasks."""
        names = (name for scoring in self.record.plan.scorings for name in metric_names(scoring))
        return tuple(dict.fromkeys(names))

    def file_stem(self, task: str = "") -> str:
        """What the file is called, without its ending; one that is not whole says so."""
        facts = self.record.plan.facts
        words = [facts.dataset_name or facts.suite, task, facts.model, self.record.plan.run_id[:8]]
        words += ["partial"] if self.is_partial else []
        return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word) for word in words if word)


class LineWriter(Protocol):
    """Writes one file of whole lines, each an object of JSON."""

    def begin(self) -> bytes: ...

    def write(self, lines: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class OutcomeWriter(Protocol):
    """Writes one file of outcomes beside their samples."""

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class LineForm:
    """`lines`: what the file shows of each sample; None: only figures. `has_figures`: it shows the summary.

    `is_resumable`: its writer keeps nothing from one piece to the next, so that the file can be
    begun in its middle.
    """

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], LineWriter]
    lines: LineKind | None = LineKind.OUTCOME
    has_figures: bool = False
    is_resumable: bool = False
    is_of_one_task: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeForm:
    """A form of one task that needs more of it than its lines."""

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], OutcomeWriter]
    is_of_one_task: bool = True


ExportForm = LineForm | OutcomeForm
