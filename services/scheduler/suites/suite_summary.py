"""A suite as lists show it: what its tasks are, without what they ask."""

from dataclasses import dataclass

from services.scheduler.suites.task_definition import OutputType, SuiteDefinition, TaskDefinition


@dataclass(frozen=True, slots=True)
class TaskSummary:
    name: str
    version: str
    output_type: OutputType
    metrics: tuple[str, ...]
    dataset: str


@dataclass(frozen=True, slots=True)
class SuiteSummary:
    """`version` and `digest` as of a `SuiteDefinition`."""

    name: str
    description: str
    tasks: tuple[TaskSummary, ...]
    version: int = 0
    digest: str = ""


def summary_of(suite: SuiteDefinition) -> SuiteSummary:
    tasks = tuple(_task(task) for task in suite.tasks)
    return SuiteSummary(suite.name, suite.description, tasks, suite.version, suite.digest)


def _task(task: TaskDefinition) -> TaskSummary:
    metrics = tuple(metric.name for metric in task.scoring.metrics)
    return TaskSummary(task.name, task.version, task.scoring.output_type, metrics, str(task.rows))
