"""A group of lm-evaluation-harness and the groups within it, as a suite."""

from collections.abc import Iterator, Mapping

from services.scheduler.suites.format.suite_document import Fault, path_problem
from services.scheduler.suites.format.yaml_files import Declaration, Layer, Place
from services.scheduler.suites.format.yaml_schema import schema_faults
from services.scheduler.suites.format.yaml_suite_draft import DeclaredGroup, SuiteDraft, group_metrics
from services.scheduler.suites.task_definition import TaskGroup

_KEYS = frozenset({"group", "group_alias", "task", "tag", "aggregate_metric_list", "metadata"})


def add_members(draft: SuiteDraft, declaration: Declaration) -> DeclaredGroup:
    """Adds the tasks of a group and the groups within it, and gives the group."""
    name = declaration.text("group")
    fields = declaration.fields(is_deep=False)
    faults = list(_faults(fields))
    for fault in faults:
        draft.files.report(declaration.place(fault.path), fault.problem)
    before = len(draft.names)
    for member in _members(declaration):
        _add_member(draft, member)
    metrics = () if faults else group_metrics(_aggregates(fields))
    return DeclaredGroup(TaskGroup(name, tuple(draft.names[before:]), metrics), declaration)


def _faults(fields: Mapping[str, object]) -> Iterator[Fault]:
    for fault in schema_faults(fields["group"], "name"):
        yield Fault(("group",), fault.problem)
    for fault in schema_faults(_aggregates(fields), "aggregates") if _aggregates(fields) else []:
        yield Fault(("aggregate_metric_list", *fault.path), fault.problem)
    for key in fields.keys() - _KEYS:
        yield Fault((key,), "a group does not change its tasks; write this in the tasks")
    if not fields.get("task"):
        yield Fault(("task",), "is missing: a group lists its tasks")


def _aggregates(fields: Mapping[str, object]) -> list[object]:
    listed = fields.get("aggregate_metric_list") or []
    return listed if isinstance(listed, list) else [listed]


def _members(declaration: Declaration) -> Iterator[Layer]:
    """Each entry of the list of tasks, where it is written."""
    holder = next((layer for layer in reversed(declaration.layers) if layer.node.below("task")), None)
    listed = holder.node.below("task") if holder else None
    if holder is None or listed is None:
        return
    if not isinstance(listed.content, tuple):
        yield Layer(holder.file, listed, (*holder.path, "task"))
        return
    for number, member in enumerate(listed.content):
        yield Layer(holder.file, member, (*holder.path, "task", number))


def _add_member(draft: SuiteDraft, member: Layer) -> None:
    place = Place(member.file, member.path, member.node.line)
    written = Declaration((member,))
    name = written.text("task")
    if isinstance(member.node.content, str):
        _add_named(draft, member.node.content, place)
    elif written.has("group"):
        draft.add_group(add_members(draft, draft.files.declaration(member)))
    elif name:
        _add_written(draft, member, name)
    else:
        draft.files.report(place, "a task is its name, or its keys and values with the key task")


def _add_written(draft: SuiteDraft, member: Layer, name: str) -> None:
    """A task as it is written here, over what the file of its name says where there is one."""
    file = f"{name}.yaml"
    node = draft.files.node(file) if not path_problem(file) else None
    low = draft.files.declaration(Layer(file, node)) if node else Declaration(())
    high = draft.files.declaration(member)
    whole = Declaration((*low.layers, *high.layers), is_whole=low.is_whole and high.is_whole)
    if not node and high.is_whole and not high.has("dataset_path") and not high.has("dataset"):
        problem = f"there is no {file}, and no dataset_path here"
        draft.files.report(high.place(("task",)), problem)
    else:
        draft.add(whole)


def _add_named(draft: SuiteDraft, name: str, place: Place) -> None:
    """A task, or a group, of the file of its name."""
    file = f"{name}.yaml"
    node = draft.files.node(file) if not path_problem(file) else None
    if node is None or node.below("group") is None:
        draft.add_file(name, place)
    elif file in draft.group_files:
        draft.files.report(place, f"the group of {file} is there twice, or within itself")
    else:
        draft.group_files.add(file)
        draft.add_group(add_members(draft, draft.files.declaration(Layer(file, node))))
