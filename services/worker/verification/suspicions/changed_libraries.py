"""Finds code of an agent that puts functions of its own in the place of those of a library."""

import ast
import sys
from collections.abc import Iterator, Sequence

from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.folded_texts import FoldedTexts

_LIBRARIES = frozenset(sys.stdlib_module_names) | {"numpy", "pandas", "scipy", "sklearn", "torch", "requests"}
# Programs set their own output, arguments, certificates and types of C.
_OF_PROGRAMS = frozenset({"sys", "ssl", "ctypes", "logging", "locale", "readline", "signal"})
_CHANGED = _LIBRARIES - _OF_PROGRAMS
_HOOKS = ("excepthook", "unraisablehook")


class LibraryChanges:
    """`nodes` are those of a file."""

    def __init__(self, nodes: Sequence[ast.AST], folded: FoldedTexts) -> None:
        self._folded = folded
        self._modules: set[str] = set()
        # Names of a library that may be classes: their methods are functions of it too.
        self._members: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                found = [each for each in node.names if each.name.partition(".")[0] in _CHANGED]
                self._modules |= {each.asname or each.name.partition(".")[0] for each in found}
            elif isinstance(node, ast.ImportFrom) and _is_of_library(node):
                self._members |= {each.asname or each.name for each in node.names}

    def of(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Assign(targets=[target]) if self._is_of_library(target) and _may_be_called(node.value):
                yield names.CHANGES
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, name, value]):
                attribute = self._folded.known(name) or ""
                is_hook = attribute.endswith(_HOOKS)
                if self._is_rooted(owner) and not is_hook and _may_be_called(value):
                    yield names.CHANGES

    def _is_of_library(self, target: ast.expr) -> bool:
        match target:
            case ast.Attribute():
                return not target.attr.endswith(_HOOKS) and self._is_rooted(target.value)
            case ast.Subscript(value=ast.Attribute(value=owner, attr="__dict__")):
                return self._is_rooted(owner)
            case ast.Subscript(value=ast.Call(func=ast.Name(id="vars"), args=[owner])):
                return self._is_rooted(owner)
        return False

    def _is_rooted(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._modules | self._members


def _is_of_library(node: ast.ImportFrom) -> bool:
    return not node.level and (node.module or "").partition(".")[0] in _CHANGED


def _may_be_called(value: ast.expr) -> bool:
    """Not a setting, such as a number or a list."""
    return isinstance(value, ast.Lambda | ast.Name | ast.Attribute | ast.Call)
