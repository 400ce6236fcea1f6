"""A run on its way into a file: what it was, and its figures where the file shows them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
