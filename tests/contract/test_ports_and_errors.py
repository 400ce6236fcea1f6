"""Ports stand in the `ports.py` of their topic, errors in its `errors.py`; the tops of services are alike."""

import ast
import builtins
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.contract.test_code_budgets import ROOT, SOURCE, own_files, parsed

BUILT_IN_ERRORS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
# What stands at the top of each service beside topics. `postgres` names the schema and loads its queries.
TOP = {"__main__", "settings", "wiring", "topics", "metrics"}
TOP_OF_SCHEMA = TOP | {"postgres"}
# They have no use cases and so no ports: a protocol stands beside the function that takes it, that of a clock
# beside the clocks.
LIBRARIES = ("proctor", "services/common")


def name_of(base: ast.expr) -> str:
    """`Protocol` of `typing.Protocol` and of `Protocol[T]`."""
    if isinstance(base, ast.Subscript):
        return name_of(base.value)
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))


def error_names(bases: Mapping[str, set[str]]) -> set[str]:
    """The classes that derive from a built-in exception, directly or by others of them."""
    errors = set(BUILT_IN_ERRORS)
    while more := {name for name, of in bases.items() if of & errors} - errors:
        errors |= more
    return errors


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def taken_from_modules(path: Path) -> Iterator[str]:
    """Full names of what a file imports from a module or takes from one that it imports."""
    modules = {}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"


def is_in(path: Path, name: str) -> bool:
    """In the module of this name, or in a package of this name."""
    return name in path.with_suffix("").parts


def test_a_port_stands_in_ports_or_beside_its_only_user() -> None:
    taken = {name for path in own_files(*SOURCE) for name in taken_from_modules(path)}
    misplaced = [
        f"{path.relative_to(ROOT)}: {each.name}"
        for path in own_files(*SOURCE)
        if not is_in(path, "ports") and not path.relative_to(ROOT).as_posix().startswith(LIBRARIES)
        for each in classes(path)
        if "Protocol" in map(name_of, each.bases) and f"{module_of(path)}.{each.name}" in taken
    ]
    assert misplaced == []


def test_an_error_stands_in_errors_unless_it_is_private_to_its_module() -> None:
    bases = {
        each.name: set(map(name_of, each.bases)) for path in own_files(*SOURCE) for each in classes(path)
    }
    errors = error_names(bases)
    misplaced = [
        f"{path.relative_to(ROOT)}: {each.name}"
        for path in own_files(*SOURCE)
        if not is_in(path, "errors")
        for each in classes(path)
        if each.name in errors and not each.name.startswith("_")
    ]
    assert misplaced == []


@pytest.mark.parametrize("service", ["gateway", "scheduler", "worker", "results"])
def test_the_top_of_a_service_has_the_same_files_as_the_others(service: str) -> None:
    folder = ROOT / "services" / service
    expected = TOP_OF_SCHEMA if (folder / "migrations").is_dir() else TOP
    assert {path.stem for path in folder.glob("*.py")} == expected


def test_a_private_class_is_taken_by_no_other_module() -> None:
    defined = {
        f"{module_of(path)}.{each.name}"
        for path in own_files(*SOURCE)
        for each in classes(path)
        if each.name.startswith("_")
    }
    taken = {name for path in own_files(*SOURCE) for name in taken_from_modules(path)}
    assert taken & defined == set()


def test_errors_are_found_by_the_bases_of_their_bases() -> None:
    bases = {"Refused": {"Sentence"}, "Sentence": {"ValueError"}, "Answer": {"Protocol"}}
    assert error_names(bases) - BUILT_IN_ERRORS == {"Refused", "Sentence"}
