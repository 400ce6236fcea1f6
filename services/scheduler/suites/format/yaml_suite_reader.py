"""Reads a suite from YAML: one of ours, a single task, or a task or group of lm-evaluation-harness."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from proctor.values.judging.named_judge import NamedJudge
from proctor.values.names.suite_name import is_id
from proctor.values.sample import MAX_SUITE_BYTES
from proctor.values.scoring import TaskGroup
from services.scheduler.suites.format.lm_eval_task import is_lm_eval_task
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import (
    MAX_FILES,
    SuiteDocument,
    SuiteFault,
    SuiteReading,
    file_faults,
)
from services.scheduler.suites.format.yaml_files import Declaration, Layer, Location, SuiteFiles
from services.scheduler.suites.format.yaml_groups import GroupReader
from services.scheduler.suites.format.yaml_suite_draft import DeclaredGroup, SuiteDraft, group_metrics
from services.scheduler.suites.format.yaml_tasks import SuiteLocation
from services.scheduler.suites.suite import SuiteDefinition

# An author mends them file by file; the answer must stay within a message.
MAX_FAULTS = 200
ROOT = "suite.yaml"


@dataclass(frozen=True, slots=True)
class NameRule:
    """`must_be` is the required name of a suite; if it is "", any name but the `taken` ones is allowed."""

    must_be: str = ""
    taken: Collection[str] = ()

    def problem(self, name: str) -> str:
        if self.must_be and name != self.must_be:
            return f"{name!r} is not the name of its folder or file, {self.must_be!r}"
        if is_id(name):
            return f"{name} has the form of an id; choose another name"
        return f"{name} is an installed suite; choose another name" if name in self.taken else ""


def read_suite(files: SuiteFiles, folder: Path, rule: NameRule) -> SuiteReading:
    """`folder` has the data files."""
    root = files.node(files.root)
    suite = None
    if files.unusable_reason(files.root):
        files.report(files.root_location, files.unusable_reason(files.root))
    elif root is not None:
        suite = _suite(files, folder, Declaration((Layer(files.root, root),)), rule)
    found = sorted(files.faults, key=lambda fault: (fault.file, fault.line))
    faults = tuple(dict.fromkeys(found))
    if len(faults) > MAX_FAULTS:
        more = SuiteFault(f"{len(faults) - MAX_FAULTS} more faults are not listed")
        faults = (*faults[:MAX_FAULTS], more)
    return SuiteReading(None if faults else suite, faults)


def _suite(files: SuiteFiles, folder: Path, written: Declaration, rule: NameRule) -> SuiteDefinition | None:
    [root] = written.layers
    declaration = written if written.has("suite") else files.declaration(root)
    kinds = ("suite", "group", "task") if declaration is written else ("group", "task")
    kind = next((key for key in kinds if declaration.has(key)), "")
    if kind == "group" and declaration.has("class"):
        # A Python task of lm-evaluation-harness, which may also name its group.
        kind = "task"
    if not kind:
        problem = "a suite, a task, or a group of lm-evaluation-harness is needed, with the key of this name"
        files.report(written.location(()), problem)
        return None
    name = declaration.text(kind)
    if rule.problem(name):
        files.report(declaration.location((kind,)), rule.problem(name))
    draft = SuiteDraft(files, SuiteLocation(name, folder))
    suite = _read_kind(draft, kind, declaration)
    if kind == "suite" or (kind == "task" and not is_lm_eval_task(declaration.fields(is_deep=False))):
        files.report_duplicates()
    return suite


def _read_kind(draft: SuiteDraft, kind: str, declaration: Declaration) -> SuiteDefinition:
    if kind == "suite":
        return _own_suite(draft, declaration)
    if kind == "group":
        return draft.suite("", GroupReader(draft).read(declaration))
    draft.add(declaration)
    name = draft.location.suite
    return draft.suite("", DeclaredGroup(TaskGroup(name, (name,)), declaration))


def _own_suite(draft: SuiteDraft, declaration: Declaration) -> SuiteDefinition:
    [root] = declaration.layers
    fields = cast("Mapping[str, object]", root.node.value())
    faults = schema_faults(fields, "suite")
    for found in faults:
        draft.files.report(declaration.location(found.path), found.problem)
    _add_tasks(draft, root)
    is_grouped = not any(found.path[:1] in {("groups",), ("aggregate_metric_list",)} for found in faults)
    if is_grouped:
        _add_groups(draft, declaration, cast("Sequence[Mapping[str, object]]", fields.get("groups", ())))
    metrics = group_metrics(fields.get("aggregate_metric_list")) if is_grouped else ()
    whole = TaskGroup(draft.location.suite, tuple(draft.declared), metrics)
    suite = draft.suite(str(fields.get("description", "")), DeclaredGroup(whole, declaration))
    if any(found.path[:1] == ("judges",) for found in faults):
        return suite
    judges = cast("Sequence[Mapping[str, str]]", fields.get("judges", ()))
    return replace(suite, judges=tuple(NamedJudge(**judge) for judge in judges))


def _add_tasks(draft: SuiteDraft, root: Layer) -> None:
    listed = root.node.child("tasks")
    entries = listed.content if listed is not None and isinstance(listed.content, tuple) else ()
    for number, entry in enumerate(entries):
        path = ("tasks", number)
        if isinstance(entry.content, str):
            draft.add_file(entry.content, Location(root.file, path, entry.line))
        elif isinstance(entry.content, dict):
            draft.add(draft.files.declaration(Layer(root.file, entry, path)))


def _add_groups(draft: SuiteDraft, declaration: Declaration, listed: Sequence[Mapping[str, object]]) -> None:
    for number, fields in enumerate(listed):
        metrics = group_metrics(fields.get("aggregate_metric_list"))
        group = TaskGroup(str(fields["group"]), tuple(cast("Sequence[str]", fields["tasks"])), metrics)
        draft.add_group(DeclaredGroup(group, declaration, ("groups", number)))


def read_document(
    document: SuiteDocument, taken_names: Collection[str] = (), folder: Path = Path()
) -> SuiteReading:
    """Reads a user's document from memory; files that were not sent with it are missing.

    `folder` is where its data files will be unpacked; `taken_names` are names of other suites.
    """
    faults = _faults(document)
    if faults:
        return SuiteReading(None, tuple(faults))
    contents = {**document.files, ROOT: document.text.encode()}

    def read(path: str) -> bytes:
        if path not in contents:
            raise FileNotFoundError(2, "attach it: it was not sent with the document")
        return contents[path]

    sent = frozenset(document.files)
    files = SuiteFiles(read, ROOT, lambda: sent, sent_files=sent)
    return read_suite(files, folder, NameRule(taken=taken_names))


def _faults(document: SuiteDocument) -> list[SuiteFault]:
    if document.size_bytes > MAX_SUITE_BYTES or len(document.files) > MAX_FILES:
        limit = f"{MAX_SUITE_BYTES} bytes in {MAX_FILES} files"
        return [SuiteFault(f"the suite has more than {limit}; name a data set of the hub for the rows")]
    return list(file_faults(document.files))
