"""Suites for tests, written as the files a user would write."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.suites.yaml_installed_suites import SuiteRegistry, load_suites

CHOICE_TASK: Mapping[str, object] = {
    "task": "colours",
    "version": "1",
    "dataset": {"id": "org/colours", "split": "validation", "fewshot_split": "train"},
    "output_type": "multiple_choice",
    "doc_to_text": "{{thing}} is",
    "doc_to_choice": ["red", "green"],
    "doc_to_target": "label",
    "metric_list": [{"metric": "acc"}],
}


def without(fields: Mapping[str, object], *keys: str) -> dict[str, object]:
    return {key: value for key, value in fields.items() if key not in keys}


def write_suite(folder: Path, *tasks: Mapping[str, object], suite: str = "shades") -> Path:
    """The folder of suites, with one suite of these tasks in it."""
    home = folder / suite
    home.mkdir(parents=True, exist_ok=True)
    names = [str(task["task"]) for task in tasks]
    (home / "suite.yaml").write_text(yaml.safe_dump({"suite": suite, "tasks": names}))
    for name, task in zip(names, tasks, strict=True):
        (home / f"{name}.yaml").write_text(yaml.safe_dump(dict(task), sort_keys=False))
    return folder


def load_one(folder: Path, **changes: object) -> TaskDefinition:
    """The colours task, changed; a change to None leaves a key out."""
    fields = {key: value for key, value in {**CHOICE_TASK, **changes}.items() if value is not None}
    registry: SuiteRegistry = load_suites(write_suite(folder, fields))
    return registry.suite("shades").tasks[0]


@dataclass(frozen=True)
class RowsInMemory:
    """A source of rows by split."""

    splits: Mapping[str, Iterable[SourceRow]] = field(default_factory=dict)

    def open(self, reference: RowsReference) -> RowSet:
        provenance = Provenance(source="memory", location=str(reference), revision="1")
        return RowSet(self.splits[reference.split], provenance)
