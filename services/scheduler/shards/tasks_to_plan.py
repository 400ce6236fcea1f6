"""What a run is planned from: tasks that open into samples, be they of a suite or the rows of a data set."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.suites.rendering.sample import Sample
from services.scheduler.suites.task_definition import TaskGroup, TaskScoring


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
    """`open` blocks, so it is called in a thread."""

    name: str
    scoring: TaskScoring
    open: Callable[[], OpenedTask]


@dataclass(frozen=True, slots=True)
class TasksToPlan:
    """In the order asked. `groups` are summed up together; `missing` are tasks that were not ordered."""

    tasks: Sequence[TaskToPlan]
    groups: Sequence[TaskGroup] = ()
    missing: Sequence[str] = ()
