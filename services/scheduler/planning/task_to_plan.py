"""A task of a run that is planned, and its samples once it is opened."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.scoring import TaskGroup, TaskScoring
from services.scheduler.runs.lifecycle.run import PlannedTask
from services.scheduler.suites.rendering.sample import RenderedSample


@dataclass(frozen=True, slots=True)
class OpenedTask:
    """`samples` are read once, in a thread. `planned` has no place in the run yet, nor a sample set.

    `facts` are what one needs to know to ask the same again.
    """

    planned: PlannedTask
    samples: Iterator[RenderedSample]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TaskToPlan:
    """`open` blocks, so it is called in a thread.

    All rows of a data set must be scorable, or the run fails before any request; suites may contain
    unscorable samples. `code`: files of the code that scores.
    """

    name: str
    scoring: TaskScoring
    open: Callable[[], OpenedTask]
    is_of_dataset: bool = False
    code: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def checked_scoring(self) -> TaskScoring | None:
        """The scoring that each sample is checked against before any is asked."""
        return self.scoring if self.is_of_dataset and self.scoring.metrics else None


@dataclass(frozen=True, slots=True)
class TasksToPlan:
    """Tasks in the order asked.

    `groups` are summed up together; `missing` are tasks that were not ordered.
    """

    tasks: Sequence[TaskToPlan]
    groups: Sequence[TaskGroup] = ()
    missing: Sequence[str] = ()
