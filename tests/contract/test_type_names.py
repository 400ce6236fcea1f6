"""A type name means one thing inside a service."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [path for path in sorted((ROOT / "services").iterdir()) if path.is_dir()] + [ROOT / "proctor"]


def types_of(path: Path) -> list[str]:
    """The public classes of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


@pytest.mark.parametrize(
    "package", [path for path in PACKAGES if path.name != "__pycache__"], ids=lambda path: path.name
)
def test_a_type_name_is_defined_once(package: Path) -> None:
    modules = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        if "_pb2" in path.name:
            continue
        for name in types_of(path):
            modules[name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}
