"""Wirings pass arguments by keyword, and tasks have names: both are read where something went wrong."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.test_code_budgets import ROOT, SOURCE, own_files, parsed

WIRINGS = [path for path in own_files("services") if path.name == "wiring.py"]
MAX_LINES = 200


def own_classes(path: Path) -> set[str]:
    """Names of classes of this repository, and of its modules, in a file."""
    tree = parsed(path)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("services.", "proctor."))
        for alias in node.names
    }
    return imported | {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def test_no_wiring_is_longer_than_a_reader_takes_in() -> None:
    lines = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in WIRINGS}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def new_types() -> set[str]:
    """Names of values such as `FileId`, which have one unnamed argument."""
    return {
        target.id
        for path in own_files(*SOURCE)
        for node in parsed(path).body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("NewType(")
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def test_wirings_name_the_arguments_of_our_classes() -> None:
    values = new_types()
    unnamed = [
        f"{path.relative_to(ROOT)}:{call.lineno} {name}"
        for path in WIRINGS
        for name, call in calls(path)
        if name.partition(".")[0] in own_classes(path) and name.rpartition(".")[2][0].isupper()
        if call.args and name not in values
    ]
    assert WIRINGS
    assert values
    assert unnamed == []


@pytest.mark.parametrize("service", ["gateway", "results", "scheduler", "worker"])
def test_every_service_connects_its_topics_in_one_function(service: str) -> None:
    top = parsed(ROOT / "services" / service / "topics" / "wiring.py")
    made = {node.name: node for node in top.body if isinstance(node, ast.FunctionDef)}
    assert "Topics" in {node.name for node in top.body if isinstance(node, ast.ClassDef)}
    assert ast.unparse(made["make_topics"].returns or ast.Constant(None)) == "Topics"
    opening = parsed(ROOT / "services" / service / "wiring.py")
    opened = [node.name for node in opening.body if isinstance(node, ast.AsyncFunctionDef)]
    assert f"running_{service}" in opened


# What makes no parts: it opens, reads or runs.
OTHER_FUNCTIONS = {"engines_by_url", "lead", "read_definitions", "rollout_slots", "sweep"}
# What wirings are given, and what they return; and the engine of a worker without sandboxes.
MADE = ("Parts", "Topics")
GIVEN = (
    "Connections",
    "Definitions",
    "LedRuns",
    "Processes",
    "Records",
    "Resources",
    "Signals",
    "Sources",
)
OTHER_CLASSES = {"AbsentEngine", "RecordOfRuns"}


def test_the_wiring_of_a_topic_makes_a_part_or_its_parts() -> None:
    topics = [path for path in WIRINGS if len(path.relative_to(ROOT).parts) > 3]
    functions = [
        node.name
        for path in topics
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith(("_", "make_"))
    ]
    classes = [
        node.name
        for path in topics
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.endswith((*MADE, *GIVEN))
    ]
    assert set(functions) == OTHER_FUNCTIONS
    assert set(classes) == OTHER_CLASSES


def test_every_task_has_a_name() -> None:
    nameless = [
        f"{path.relative_to(ROOT)}:{call.lineno} {name}"
        for path in own_files(*SOURCE)
        for name, call in calls(path)
        if name.endswith("ensure_future")
        or (name.endswith("create_task") and not any(keyword.arg == "name" for keyword in call.keywords))
    ]
    assert nameless == []
