"""Modules and folders depend on each other in one direction; imports inside functions count too."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path

from tests.contract.test_code_budgets import ROOT, SOURCE, own_files, parsed


def imported_names(path: Path) -> Iterator[str]:
    """Full names of the modules, or of the things in modules, that a file imports anywhere."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imports_by_folder() -> dict[str, dict[str, set[str]]]:
    """Who imports whom among the files and folders directly in each folder."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in own_files(*SOURCE):
        importer = path.relative_to(ROOT).with_suffix("").parts
        for name in imported_names(path):
            imported = name.split(".")
            shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(importer, imported, strict=False))])
            if shared < min(len(importer), len(imported)):
                graphs["/".join(importer[:shared])][importer[shared]].add(imported[shared])
    return graphs


def test_no_folder_has_a_circle_of_imports() -> None:
    circles = {}
    for folder, graph in imports_by_folder().items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circles[folder] = " -> ".join(reversed(error.args[1]))
    assert circles == {}
