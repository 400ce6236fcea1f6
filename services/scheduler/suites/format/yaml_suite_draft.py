"""A suite under construction: tasks and groups are added, and each reports its faults."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from proctor.values.scoring import GroupMetric, TaskGroup
from services.scheduler.suites.format.suite_document import KeyPath, path_problem
from services.scheduler.suites.format.yaml_files import Declaration, Layer, Location, SuiteFiles
from services.scheduler.suites.format.yaml_tasks import SuiteLocation, read_task
from services.scheduler.suites.suite import SuiteDefinition, TaskDefinition

# A run has a task for each, and its summary has to fit a message.
MAX_TASKS = 1000


@dataclass(frozen=True, slots=True)
class DeclaredGroup:
    """A group and its location: at `path` of a declaration."""

    group: TaskGroup
    declaration: Declaration
    path: KeyPath = ()

    def location(self, *path: str | int) -> Location:
        return self.declaration.location((*self.path, *path))


@dataclass
class SuiteDraft:
    """`declared` has all tasks by name, also invalid ones."""

    files: SuiteFiles
    location: SuiteLocation
    declared: dict[str, Declaration] = field(default_factory=dict)
    tasks: list[TaskDefinition] = field(default_factory=list)
    groups: list[DeclaredGroup] = field(default_factory=list)

    def add_file(self, name: str, named_at: Location) -> None:
        """Adds the task of the file `<name>.yaml`; the task must have the name of its file."""
        file = f"{name}.yaml"
        problem = path_problem(file) or self.files.unusable_reason(file)
        if problem:
            self.files.report(named_at, problem)
        elif (node := self.files.node(file)) is not None:
            declaration = self.files.declaration(Layer(file, node))
            declared = self.add(declaration)
            if declared and declared != name:
                problem = f"{declared!r} is not the name of its file"
                self.files.report(declaration.location(("task",)), problem)

    def add(self, declaration: Declaration) -> str:
        """Returns the name of the task, "" if it has none."""
        name = declaration.text("task")
        if len(self.declared) == MAX_TASKS:
            self.files.report(self.files.root_location, f"a suite has at most {MAX_TASKS} tasks")
            return name
        if name in self.declared:
            self.files.report(declaration.location(("task",)), f"the task {name} is there twice")
        if name:
            self.declared.setdefault(name, declaration)
        task = read_task(self.files, declaration, self.location) if declaration.is_complete else None
        if task is not None:
            self.tasks.append(task)
        return name

    def add_group(self, declared: DeclaredGroup) -> None:
        name = declared.group.group
        taken = {self.location.suite, *self.declared, *(other.group.group for other in self.groups)}
        if name in taken:
            self.files.report(
                declared.location("group"), f"the name {name} is taken by the suite, a task or a group"
            )
        for number, task in enumerate(declared.group.tasks):
            if task not in self.declared:
                self.files.report(declared.location("tasks", number), f"the suite has no task {task}")
        self._check_metrics(declared)
        self.groups.append(declared)

    def suite(self, description: str, whole: DeclaredGroup) -> SuiteDefinition:
        """The suite of what was added, with `whole`, the group of all tasks, as its last group."""
        self._check_metrics(whole)
        groups = [declared.group for declared in self.groups]
        return SuiteDefinition(self.location.suite, description, tuple(self.tasks), (*groups, whole.group))

    def _check_metrics(self, declared: DeclaredGroup) -> None:
        """Reports metrics that no task of the group has.

        Where a task is invalid nothing is reported: it may have the missing metric.
        """
        tasks = [task for task in self.tasks if task.name in declared.group.tasks]
        if not tasks or len(tasks) < len(declared.group.tasks):
            return
        known = {metric.name for task in tasks for metric in task.scoring.metrics}
        for number, metric in enumerate(declared.group.metrics):
            if metric.metric not in known:
                location = declared.location("aggregate_metric_list", number, "metric")
                self.files.report(location, f"no task of {declared.group.group} has {metric.metric}")


def group_metrics(listed: object) -> tuple[GroupMetric, ...]:
    """Metrics of an `aggregate_metric_list` that is valid by the schema."""
    uses = cast("Sequence[dict[str, object]]", listed or ())
    return tuple(GroupMetric(str(use["metric"]), bool(use.get("weight_by_size", True))) for use in uses)
