"""Rows with what several runs answered to each."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.results.outcomes.outcome import ListedOutcome
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.samples.sample import Sample


@dataclass(frozen=True, slots=True)
class Side:
    """A run, and the task of it that is looked at."""

    plan: RunPlan
    task_index: int

    @property
    def task(self) -> PlannedTask:
        return self.plan.tasks[self.task_index]

    def sample(self, position: int) -> int:
        """Its number in the run."""
        return self.task.first_sample + position


@dataclass(frozen=True, slots=True)
class PairedRow:
    """`positions`: of the same sample in the set of each run, the first one first; None where it has none."""

    positions: Sequence[int | None]
    is_differing: bool

    @property
    def first(self) -> int:
        assert self.positions[0] is not None
        return self.positions[0]


@dataclass(frozen=True, slots=True)
class ShownRow:
    """`answers`: one per run, None where it has no outcome."""

    task: PlannedTask
    sample: Sample
    answers: Sequence[ListedOutcome | None]
    is_differing: bool


def differ(said: Sequence[str | None]) -> bool:
    """What failed or is missing has said nothing, and that differs from nothing."""
    return len({digest for digest in said if digest is not None}) > 1
