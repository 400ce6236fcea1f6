"""Groups of lm-evaluation-harness: members by name over all files, in nested groups, and keys for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proctor.values.scoring import TaskGroup
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault
from services.scheduler.suites.format.yaml_document import Node
from services.scheduler.suites.format.yaml_files import Declaration, Layer, Location
from services.scheduler.suites.format.yaml_suite_draft import DeclaredGroup, SuiteDraft, group_metrics

# All other keys of a group replace those of its tasks.
_GROUP_KEYS = frozenset(
    {"group", "group_alias", "task", "tag", "aggregate_metric_list", "metadata", "include"}
)
# Groups whose files name each other; circles are reported apart.
MAX_LEVELS = 20
_BY_SIZE = "weight_by_size"
# What a member is called by; not a key for its tasks.
_NAMES = frozenset({"group", "task"})

# Layers over those of a task.
Overrides = tuple[Layer, ...]
TaskNames = tuple[str, ...]


@dataclass
class GroupReader:
    """Adds the tasks of a group to a draft. A task of several groups is one task.

    `_read` has the files of groups with the keys for their tasks, and their tasks; `_open` those on the way.
    """

    draft: SuiteDraft
    _read: dict[str, tuple[Overrides, TaskNames]] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def read(self, declaration: Declaration, overrides: Overrides = ()) -> DeclaredGroup:
        fields = declaration.fields(is_deep=False)
        faults = list(_faults(fields))
        for found in faults:
            self.draft.files.report(declaration.location(found.path), found.problem)
        overrides = (*_without(declaration.layers, _GROUP_KEYS), *overrides)
        names = [name for member in _members(declaration) for name in self._member(member, overrides)]
        # As in lm-evaluation-harness a metric that no task has gives no figure.
        known = {
            metric.name for task in self.draft.tasks if task.name in names for metric in task.scoring.metrics
        }
        metrics = () if faults else group_metrics(_aggregates(fields))
        had = tuple(metric for metric in metrics if metric.metric in known)
        return DeclaredGroup(
            TaskGroup(declaration.text("group"), tuple(dict.fromkeys(names)), had), declaration
        )

    def _member(self, member: Layer, overrides: Overrides) -> TaskNames:
        location = Location(member.file, member.path, member.node.line)
        written = Declaration((member,))
        group, task = written.text("group"), written.text("task")
        own = _without((member,), _NAMES)
        if isinstance(member.node.content, str):
            return self._named(member.node.content, location, overrides)
        if group and not written.has("task"):
            return self._named(group, location, (*overrides, *own))
        if group:
            return self._add_group(self.read(self.draft.files.declaration(member), overrides))
        if not task:
            problem = "a task is its name, or its keys and values with the key task"
            self.draft.files.report(location, problem)
            return ()
        names = self.draft.files.task_names
        if task in names.files or task in names.tagged:
            return self._named(task, location, (*overrides, *own))
        return self._written(self.draft.files.declaration(member), overrides)

    def _named(self, name: str, location: Location, overrides: Overrides) -> TaskNames:
        """Adds the task or the group that a file declares, or the tasks of a tag."""
        files = self.draft.files
        file = files.task_names.files.get(name, "")
        if not file and name in files.task_names.tagged:
            tagged = files.task_names.tagged[name]
            return tuple(one for task in tagged for one in self._named(task, location, overrides))
        if not file:
            files.report(location, f"no file of the suite's folder has a task, a group or a tag {name}")
            return ()
        node = files.node(file)
        if node is None:
            return ()
        declaration = files.declaration(Layer(file, node))
        if declaration.has("group") and not declaration.has("class"):
            return self._group_file(file, declaration, location, overrides)
        return self._add(Declaration((*declaration.layers, *overrides), declaration.is_complete))

    def _group_file(
        self, file: str, declaration: Declaration, location: Location, overrides: Overrides
    ) -> TaskNames:
        problem = ""
        known, names = self._read.get(file, (overrides, ()))
        if file in self._open:
            problem = f"goes round in a circle: {' → '.join([*self._open[self._open.index(file) :], file])}"
        elif len(self._open) == MAX_LEVELS:
            problem = f"groups lie more than {MAX_LEVELS} levels deep"
        elif known != overrides:
            problem = f"the group of {file} is there twice, with other keys for its tasks"
        if problem:
            self.draft.files.report(location, problem)
        elif file not in self._read:
            self._open.append(file)
            names = self._add_group(self.read(declaration, overrides))
            self._open.pop()
            self._read[file] = overrides, names
        return names

    def _written(self, member: Declaration, overrides: Overrides) -> TaskNames:
        """Adds a task that is written in its group, where no file has it."""
        name = member.text("task")
        whole = Declaration((*overrides, *member.layers), member.is_complete)
        if member.is_complete and not whole.has("dataset_path") and not whole.has("dataset"):
            problem = f"no file of the suite's folder has a task {name}, and there is no dataset_path here"
            self.draft.files.report(member.location(("task",)), problem)
            return (name,)
        return self._add(whole)

    def _add(self, task: Declaration) -> TaskNames:
        name = task.text("task")
        known = self.draft.declared.get(name)
        if known is None or known.layers != task.layers:
            self.draft.add(task)
        return (name,) if name else ()

    def _add_group(self, group: DeclaredGroup) -> TaskNames:
        self.draft.add_group(group)
        return group.group.tasks


def _faults(fields: Mapping[str, object]) -> Iterator[ValueFault]:
    for found in schema_faults(fields["group"], "name"):
        yield ValueFault(("group",), found.problem)
    for found in schema_faults(_aggregates(fields), "aggregates") if _aggregates(fields) else []:
        # Any name: code of a task may score it, and what no task has gives no figure.
        if found.path[1:] != ("metric",) or not isinstance(_named(fields, found.path), str):
            yield ValueFault(("aggregate_metric_list", *found.path), found.problem)
    if not fields.get("task"):
        yield ValueFault(("task",), "is missing: a group lists its tasks")


def _named(fields: Mapping[str, object], path: KeyPath) -> object:
    entry = _aggregates(fields)[int(path[0])]
    return entry.get("metric") if isinstance(entry, dict) else None


def _aggregates(fields: Mapping[str, object]) -> list[object]:
    listed = fields.get("aggregate_metric_list") or []
    return [_with_truth(use) for use in (listed if isinstance(listed, list) else [listed])]


def _with_truth(use: object) -> object:
    """A text is true there, whatever it says."""
    if not isinstance(use, dict) or not isinstance(use.get(_BY_SIZE), str):
        return use
    return {**use, _BY_SIZE: bool(use[_BY_SIZE])}


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


def _without(layers: tuple[Layer, ...], keys: frozenset[str]) -> Overrides:
    """The layers without some of their keys, and those left out that have no other."""
    kept: list[Layer] = []
    for layer in layers:
        content = layer.node.content
        other = (
            {key: node for key, node in content.items() if key not in keys}
            if isinstance(content, dict)
            else {}
        )
        if other:
            kept.append(Layer(layer.file, Node(layer.node.line, other, layer.node.size), layer.path))
    return tuple(kept)
