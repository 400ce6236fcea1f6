"""Wirings pass arguments by keyword, and tasks have names: both are read where something went wrong."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contract.test_code_budgets import ROOT, SOURCE, own_files, parsed

WIRINGS = [path for path in own_files("services") if path.name in {"wiring.py", "topics.py"}]


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


def test_every_task_has_a_name() -> None:
    nameless = [
        f"{path.relative_to(ROOT)}:{call.lineno} {name}"
        for path in own_files(*SOURCE)
        for name, call in calls(path)
        if name.endswith("ensure_future")
        or (name.endswith("create_task") and not any(keyword.arg == "name" for keyword in call.keywords))
    ]
    assert nameless == []
