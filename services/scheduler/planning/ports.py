"""What planning needs: the store of plans, and the record that results keeps of a run."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.scheduler.planning.shard import MissingSample
from services.scheduler.progress.run_counts import ProgressReport, RunCounts
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.run import Run, RunId, RunState
from services.scheduler.suites.rendering.sample import Sample
from services.scheduler.suites.suite import TaskGroup, TaskScoring


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The tasks of a planned run, and what is known of how to repeat it."""

    tasks: tuple[PlannedTask, ...]
    total: int
    environment: dict[str, str] = field(default_factory=dict)
    reused_answers: int = 0


@dataclass(frozen=True, slots=True)
class CommittedSet:
    sample_set_id: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class TaskToOpen:
    planned: PlannedTask
    scoring: TaskScoring


@dataclass(frozen=True, slots=True)
class PlanToOpen:
    """What results is told of a planned run; a retry has nothing to add to what was told before."""

    tasks: Sequence[TaskToOpen] = ()
    groups: Sequence[TaskGroup] = ()
    missing_tasks: Sequence[str] = ()


class RunRecord(Protocol):
    """What results keeps of a run. Every call can be repeated."""

    async def put_samples(
        self, staging_id: str, samples: Sequence[Sample], scoring: TaskScoring | None
    ) -> None:
        """`scoring`: samples that cannot be scored so are refused."""
        ...

    async def commit_sample_set(self, staging_id: str, sample_count: int) -> CommittedSet: ...

    async def open_run(self, run: Run, plan: PlanToOpen) -> Sequence[str]:
        """Opens the epoch; gives the sample sets as results has recorded them, in order."""
        ...

    async def reuse_answers(self, run: Run, environment: Mapping[str, str]) -> int:
        """Takes stored answers of earlier runs where the engine said the same; gives how many the run has."""
        ...

    async def counts(self, run_id: RunId) -> ProgressReport: ...

    def missing(self, run_id: RunId, epoch: int) -> AsyncIterator[MissingSample]:
        """In the order of rollout and sample."""
        ...

    async def close_run(self, run: Run, state: RunState, *, allow_partial: bool) -> RunCounts | None:
        """Freezes it with the state that it ends in.

        Gives the counts of the stored summary; None where results knows no such run.
        """
        ...

    async def delete_run(self, run_id: RunId) -> None:
        """Removes all that is known of it."""
        ...

    async def failure_example(self, run_id: RunId) -> str:
        """The message of one failed sample; empty where there is none."""
        ...
