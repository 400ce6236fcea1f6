"""What a run is planned from: tasks that open into samples, be they of a suite or the rows of a data set."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.suites.rendering.sample import Sample
from services.scheduler.suites.suite import TaskGroup, TaskScoring


@dataclass(frozen=True, slots=True)
class OpenedTask:
    """`samples` are read once, in a thread. `planned` has no place in the run yet, nor a sample set.

    `facts` are what one needs to know to ask the same again.
    """

    planned: PlannedTask
    samples: Iterator[Sample]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TaskToPlan:
    """`open` blocks, so it is called in a thread.

    Of a data set all rows can be scored, or none is asked; a suite may have some that cannot.
    """

    name: str
    scoring: TaskScoring
    open: Callable[[], OpenedTask]
    is_of_dataset: bool = False

    @property
    def checked_scoring(self) -> TaskScoring | None:
        """What each sample is held against before any is asked."""
        return self.scoring if self.is_of_dataset and self.scoring.metrics else None


@dataclass(frozen=True, slots=True)
class TasksToPlan:
    """In the order asked. `groups` are summed up together; `missing` are tasks that were not ordered."""

    tasks: Sequence[TaskToPlan]
    groups: Sequence[TaskGroup] = ()
    missing: Sequence[str] = ()
