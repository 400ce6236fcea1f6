"""Finds methods of classes whose names the code computes, such as that of `__eq__`."""

import ast
from collections.abc import Collection, Iterator

from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.folded_texts import UNKNOWN, FoldedTexts

_NAMESPACES = frozenset({"locals", "vars"})
_OF_NAMESPACES = frozenset({"update", "__setitem__", "setdefault"})


class MadeClasses:
    """`functions` and `classes` are the names of those of the file."""

    def __init__(self, folded: FoldedTexts, functions: Collection[str], classes: Collection[str]) -> None:
        self._folded = folded
        self._functions = functions
        self._classes = classes

    def of(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, name, value]):
                if self._is_method(name) or self._is_of_class(owner, name, value):
                    yield names.MAKES
            case ast.Call(
                func=ast.Attribute(attr="__setattr__", value=ast.Name(id="type")), args=[_, name, _]
            ):
                if self._folded.known(name) is None:
                    yield names.MAKES
            case ast.Call(func=ast.Attribute(attr=how, value=ast.Call(func=ast.Name(id=of), args=[]))):
                if of in _NAMESPACES and how in _OF_NAMESPACES and not self._are_known(node):
                    yield names.MAKES
            case ast.Call(func=ast.Attribute(attr="__new__" | "__call__", value=ast.Name(id="type"))):
                given = [each for each in node.args if isinstance(each, ast.Dict)]
                if any(not self._has_known_keys(each) for each in given):
                    yield names.MAKES
            case ast.Assign(targets=[ast.Subscript(slice=name)]) if self._is_method(name):
                yield names.MAKES

    def _is_method(self, name: ast.expr) -> bool:
        """Of Python's own methods, with a part that is not known: `f"__{name}__"`."""
        text = self._folded.text(name) or ""
        return UNKNOWN in text and text.startswith("__") and text.endswith("__")

    def _is_of_class(self, owner: ast.expr, name: ast.expr, value: ast.expr) -> bool:
        match owner:
            case ast.Name(id=known):
                is_class = known in self._classes
            case ast.Call(func=ast.Name(id="type"), args=[_]) | ast.Attribute(attr="__class__"):
                is_class = True
            case _:
                is_class = False
        is_function = isinstance(value, ast.Lambda) or (
            isinstance(value, ast.Name) and value.id in self._functions
        )
        return is_class and is_function and self._folded.known(name) is None

    def _are_known(self, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Attribute) and node.func.attr != "update":
            return bool(node.args) and self._folded.known(node.args[0]) is not None
        return all(isinstance(each, ast.Dict) and self._has_known_keys(each) for each in node.args)

    def _has_known_keys(self, node: ast.Dict) -> bool:
        return all(each is None or self._folded.known(each) is not None for each in node.keys)
