"""Tells methods that compare from those that answer without a look at both sides."""

import ast
from collections.abc import Collection, Iterator, Sequence

from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.answers import Answers
from services.worker.verification.suspicions.dotted_names import last_name
from services.worker.verification.suspicions.sides import Method, Sides
from services.worker.verification.suspicions.truths import Expressions

_BUILTIN = {
    each.__name__: each for each in (int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
}
_OF_EACH = frozenset(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"} | {"__len__"}
_ASKING = frozenset(
    {"__array_ufunc__", "__array_function__", "__instancecheck__", "__subclasscheck__"}
    | {"__sub__", "__rsub__", "__abs__", "__xor__", "__rxor__"}
)


class Comparisons:
    """`nodes` are those of a file: functions and classes of it are read where a comparison calls them."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self._truths: dict[str, ast.FunctionDef] = {}
        self._classes: set[str] = set()
        self._silent: dict[str, bool] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                self._classes.add(node.name)
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name in ("__bool__", "__len__"):
                        self._truths[node.name] = each

    def compares_nothing(self, method: Method, name: str) -> bool:
        """Whether it answers without a look at both sides. `NotImplemented` leaves that to the other.

        One that makes its own side like the other, or compares the other with itself, looks at no two sides.
        An `__eq__` must be able to say no to a side that differs.
        """
        parts = list(ast.walk(method))
        sides = Sides(method, parts)
        expressions = Expressions(sides, self._is_silent, is_equality=name == "__eq__")
        answers = Answers(sides, expressions).of(method)
        if not answers:
            return False
        if sides.copies:
            return True
        is_looking = any(each.is_informed and not (name == "__eq__" and each.is_true) for each in answers)
        return not is_looking and not any(map(self._is_for_own_kind, parts))

    def _is_for_own_kind(self, node: ast.AST) -> bool:
        """All objects of a class without attributes are equal, and no others."""
        match node:
            case ast.If(
                test=ast.UnaryOp(
                    op=ast.Not(), operand=ast.Call(func=ast.Name(id="isinstance"), args=[_, kind])
                ),
                body=[ast.Return(value=ast.Name(id="NotImplemented"))],
            ):
                return last_name(kind) in self._classes | {"__class__"}
        return False

    def _is_silent(self, func: ast.expr) -> bool:
        """Whether a function of the file compares nothing, and calls nothing that might."""
        name = last_name(func)
        if name == "__class__" or (isinstance(func, ast.Call) and last_name(func.func) == "type"):
            # A copy of the other: `type(self)(other)`.
            return True
        if name not in self._silent:
            truth, found = self._truths.get(name), self._functions.get(name, [])
            if truth:
                self._silent[name] = not _has(truth, (ast.Compare, ast.Call, ast.Attribute))
            elif name in self._classes:
                # Objects are true.
                self._silent[name] = True
            else:
                self._silent[name] = bool(found) and not any(
                    _has(each, (ast.Compare, ast.Call, ast.BinOp)) for each in found
                )
        return self._silent[name]


def answers_by_constants(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Methods by which tests ask a value, such as `startswith` of a text, that always answer the same."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            bases = {_BUILTIN[name] for name in map(last_name, node.bases) if name in _BUILTIN}
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and _asks(each.name, bases) and _is_constant(each):
                    yield names.ANSWERS


def _asks(name: str, bases: Collection[type]) -> bool:
    is_of_base = name not in _OF_EACH and any(hasattr(base, name) for base in bases)
    return name in _ASKING or is_of_base


def _is_constant(method: ast.FunctionDef) -> bool:
    returned = [each.value for each in ast.walk(method) if isinstance(each, ast.Return)]
    return bool(returned) and all(
        isinstance(each, ast.Constant) and each.value is not None and not isinstance(each.value, str)
        for each in returned
    )


def _has(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(each, kinds) for each in ast.walk(node))
