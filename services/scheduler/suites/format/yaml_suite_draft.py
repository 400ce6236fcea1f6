"""A suite under construction: tasks and groups are added, and each reports its faults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from proctor.values.scoring import GroupMetric, TaskGroup
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault, path_problem
from services.scheduler.suites.format.yaml_files import Declaration, Layer, Location, SuiteFiles
from services.scheduler.suites.format.yaml_tasks import SuiteLocation, read_task
from services.scheduler.suites.suite import SuiteDefinition, TaskDefinition

# A run has a task for each, and its summary has to fit a message.
MAX_TASKS = 1000
_KEYS = frozenset({"group", "group_alias", "task", "tag", "aggregate_metric_list", "metadata"})


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
    """`names` has the names of all tasks, also invalid ones; `group_files` the files of groups."""

    files: SuiteFiles
    location: SuiteLocation
    names: list[str] = field(default_factory=list)
    tasks: list[TaskDefinition] = field(default_factory=list)
    groups: list[DeclaredGroup] = field(default_factory=list)
    group_files: set[str] = field(default_factory=set)

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
        if len(self.names) == MAX_TASKS:
            self.files.report(self.files.root_location, f"a suite has at most {MAX_TASKS} tasks")
            return name
        if name in self.names:
            self.files.report(declaration.location(("task",)), f"the task {name} is there twice")
        if name:
            self.names.append(name)
        task = read_task(self.files, declaration, self.location) if declaration.is_complete else None
        if task is not None:
            self.tasks.append(task)
        return name

    def add_group(self, declared: DeclaredGroup) -> None:
        name = declared.group.group
        taken = {self.location.suite, *self.names, *(other.group.group for other in self.groups)}
        if name in taken:
            self.files.report(
                declared.location("group"), f"the name {name} is taken by the suite, a task or a group"
            )
        for number, task in enumerate(declared.group.tasks):
            if task not in self.names:
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


def add_members(draft: SuiteDraft, declaration: Declaration) -> DeclaredGroup:
    """Adds the tasks and groups of a group of lm-evaluation-harness, and returns it."""
    name = declaration.text("group")
    fields = declaration.fields(is_deep=False)
    faults = list(_faults(fields))
    for found in faults:
        draft.files.report(declaration.location(found.path), found.problem)
    before = len(draft.names)
    for member in _members(declaration):
        _add_member(draft, member)
    metrics = () if faults else group_metrics(_aggregates(fields))
    return DeclaredGroup(TaskGroup(name, tuple(draft.names[before:]), metrics), declaration)


def _faults(fields: Mapping[str, object]) -> Iterator[ValueFault]:
    for found in schema_faults(fields["group"], "name"):
        yield ValueFault(("group",), found.problem)
    for found in schema_faults(_aggregates(fields), "aggregates") if _aggregates(fields) else []:
        yield ValueFault(("aggregate_metric_list", *found.path), found.problem)
    for key in fields.keys() - _KEYS:
        yield ValueFault((key,), "a group does not change its tasks; write this in the tasks")
    if not fields.get("task"):
        yield ValueFault(("task",), "is missing: a group lists its tasks")


def _aggregates(fields: Mapping[str, object]) -> list[object]:
    listed = fields.get("aggregate_metric_list") or []
    return listed if isinstance(listed, list) else [listed]


def _members(declaration: Declaration) -> Iterator[Layer]:
    """The entries of the list of tasks, with their locations."""
    holder = next((layer for layer in reversed(declaration.layers) if layer.node.child("task")), None)
    listed = holder.node.child("task") if holder else None
    if holder is None or listed is None:
        return
    if not isinstance(listed.content, tuple):
        yield Layer(holder.file, listed, (*holder.path, "task"))
        return
    for number, member in enumerate(listed.content):
        yield Layer(holder.file, member, (*holder.path, "task", number))


def _add_member(draft: SuiteDraft, member: Layer) -> None:
    location = Location(member.file, member.path, member.node.line)
    written = Declaration((member,))
    name = written.text("task")
    if isinstance(member.node.content, str):
        _add_named(draft, member.node.content, location)
    elif written.has("group"):
        draft.add_group(add_members(draft, draft.files.declaration(member)))
    elif name:
        _add_written(draft, member, name)
    else:
        draft.files.report(location, "a task is its name, or its keys and values with the key task")


def _add_written(draft: SuiteDraft, member: Layer, name: str) -> None:
    """Adds an inline task, which overrides the file of its name, if there is one."""
    file = f"{name}.yaml"
    node = draft.files.node(file) if not path_problem(file) else None
    low = draft.files.declaration(Layer(file, node)) if node else Declaration(())
    high = draft.files.declaration(member)
    whole = Declaration((*low.layers, *high.layers), is_complete=low.is_complete and high.is_complete)
    if not node and high.is_complete and not high.has("dataset_path") and not high.has("dataset"):
        problem = f"there is no {file}, and no dataset_path here"
        draft.files.report(high.location(("task",)), problem)
    else:
        draft.add(whole)


def _add_named(draft: SuiteDraft, name: str, location: Location) -> None:
    """Adds the task or group of the file `<name>.yaml`."""
    file = f"{name}.yaml"
    node = draft.files.node(file) if not path_problem(file) else None
    if node is None or node.child("group") is None:
        draft.add_file(name, location)
    elif file in draft.group_files:
        draft.files.report(location, f"the group of {file} is there twice, or within itself")
    else:
        draft.group_files.add(file)
        draft.add_group(add_members(draft, draft.files.declaration(Layer(file, node))))
