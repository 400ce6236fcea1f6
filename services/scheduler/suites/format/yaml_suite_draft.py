"""A suite as it is put together: tasks and groups are added, each reports what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from services.scheduler.suites.format.suite_document import Path, path_problem
from services.scheduler.suites.format.yaml_files import Declaration, Layer, Place, SuiteFiles
from services.scheduler.suites.format.yaml_tasks import SuitePlace, read_task
from services.scheduler.suites.task_definition import GroupMetric, SuiteDefinition, TaskDefinition, TaskGroup

MAX_TASKS = 1000


@dataclass(frozen=True, slots=True)
class DeclaredGroup:
    """A group, and where it is written: below `path` of a declaration."""

    group: TaskGroup
    declaration: Declaration
    path: Path = ()

    def place(self, *path: str | int) -> Place:
        return self.declaration.place((*self.path, *path))


@dataclass
class SuiteDraft:
    """`names` are those of all tasks, also of those that are not right; `group_files` those of groups."""

    files: SuiteFiles
    place: SuitePlace
    names: list[str] = field(default_factory=list)
    tasks: list[TaskDefinition] = field(default_factory=list)
    groups: list[DeclaredGroup] = field(default_factory=list)
    group_files: set[str] = field(default_factory=set)

    def add_file(self, name: str, named_at: Place) -> None:
        """The task of the file of this name; the file must be called as its task."""
        file = f"{name}.yaml"
        problem = path_problem(file) or self.files.why_unusable(file)
        if problem:
            self.files.report(named_at, problem)
        elif (node := self.files.node(file)) is not None:
            declaration = self.files.declaration(Layer(file, node))
            declared = self.add(declaration)
            if declared and declared != name:
                problem = f"{declared!r} is not the name of its file"
                self.files.report(declaration.place(("task",)), problem)

    def add(self, declaration: Declaration) -> str:
        """Gives the name of the task, "" where it has none."""
        name = declaration.text("task")
        if len(self.names) == MAX_TASKS:
            self.files.report(self.files.root_place, f"a suite has at most {MAX_TASKS} tasks")
            return name
        if name in self.names:
            self.files.report(declaration.place(("task",)), f"the task {name} is there twice")
        if name:
            self.names.append(name)
        task = read_task(self.files, declaration, self.place) if declaration.is_whole else None
        if task is not None:
            self.tasks.append(task)
        return name

    def add_group(self, declared: DeclaredGroup) -> None:
        name = declared.group.name
        taken = {self.place.suite, *self.names, *(other.group.name for other in self.groups)}
        if name in taken:
            self.files.report(
                declared.place("group"), f"the name {name} is taken by the suite, a task or a group"
            )
        for number, task in enumerate(declared.group.tasks):
            if task not in self.names:
                self.files.report(declared.place("tasks", number), f"the suite has no task {task}")
        self._check_metrics(declared)
        self.groups.append(declared)

    def suite(self, description: str, whole: DeclaredGroup) -> SuiteDefinition:
        """`whole` is the group of all tasks."""
        self._check_metrics(whole)
        groups = [declared.group for declared in self.groups]
        return SuiteDefinition(self.place.suite, description, tuple(self.tasks), (*groups, whole.group))

    def _check_metrics(self, declared: DeclaredGroup) -> None:
        """Told only where all tasks are right: a metric of a task that is not may be the one."""
        tasks = [task for task in self.tasks if task.name in declared.group.tasks]
        if not tasks or len(tasks) < len(declared.group.tasks):
            return
        known = {metric.name for task in tasks for metric in task.scoring.metrics}
        for number, metric in enumerate(declared.group.metrics):
            if metric.name not in known:
                place = declared.place("aggregate_metric_list", number, "metric")
                self.files.report(place, f"no task of {declared.group.name} has {metric.name}")


def group_metrics(listed: object) -> tuple[GroupMetric, ...]:
    """Of an `aggregate_metric_list` that follows the schema."""
    uses = cast("Sequence[dict[str, object]]", listed or ())
    return tuple(GroupMetric(str(use["metric"]), bool(use.get("weight_by_size", True))) for use in uses)
