"""What an expression of a comparing method is, true or false, where both sides differ."""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from services.worker.verification.suspicions.dotted_names import last_name
from services.worker.verification.suspicions.sides import OTHER, OWN, Sides, are_same

# Give something of both sides that says nothing of whether they are alike.
_SAY_NOTHING = frozenset(
    {"print", "zip", "map", "filter", "max", "min", "dict", "list", "tuple", "set", "str", "repr", "format"}
    | {"id", "hash", "sum", "divmod", "pow", "getattr", "join", "extend", "append", "add", "mul", "or_"}
    | {"__add__", "__radd__", "__mul__", "__or__", "__hash__", "__repr__", "__str__"}
)
_DIFFERENCES = ast.Sub | ast.BitXor | ast.Div | ast.FloorDiv | ast.BitAnd
_ORDERS = ast.Lt | ast.LtE | ast.Gt | ast.GtE
# A tolerance that lets everything pass.
_WIDE = 100
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Truth:
    """`is_informed`: a look at both sides led to it."""

    is_true: bool
    is_informed: bool = False


Truths: TypeAlias = frozenset[Truth]
Names: TypeAlias = Mapping[str, Truths]
TRUE, FALSE = frozenset({Truth(is_true=True)}), frozenset({Truth(is_true=False)})
ANY = TRUE | FALSE
_SAME = frozenset({Truth(is_true=True, is_informed=True)})
_DIFFERENT = frozenset({Truth(is_true=False, is_informed=True)})
_EITHER = _SAME | _DIFFERENT


class Expressions:
    """`is_silent`: whether a function of the same file compares nothing."""

    def __init__(self, sides: Sides, is_silent: Callable[[ast.expr], bool], *, is_equality: bool) -> None:
        self._sides = sides
        self._is_silent_here = is_silent
        self._is_equality = is_equality
        self._depth = 0

    def of(self, node: ast.expr, names: Names) -> Truths:
        self._depth += 1
        found = self._truth(node, names) if self._depth <= MAX_DEPTH else ANY
        self._depth -= 1
        return found

    def _truth(self, node: ast.expr, names: Names) -> Truths:
        match node:
            case ast.Name(id=name):
                return names.get(name, ANY)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                found = self.of(operand, names)
                return frozenset(Truth(not each.is_true, each.is_informed) for each in found)
            case ast.IfExp():
                return self._chosen(node, names)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.of(value, names)
            case ast.Compare():
                return self._compared(node, names)
            case ast.Call():
                return self._called(node, names)
            case ast.BoolOp() | ast.BinOp():
                return self._operated(node, names)
            case ast.Subscript() if self._sides.are_between(node.value, node.slice):
                return _EITHER
        return _written(node)

    def _chosen(self, node: ast.IfExp, names: Names) -> Truths:
        test = self.of(node.test, names)
        is_informed = any(each.is_informed for each in test)
        branches = [node.body] if any(each.is_true for each in test) else []
        branches += [node.orelse] if any(not each.is_true for each in test) else []
        found = (each for branch in branches for each in self.of(branch, names))
        return frozenset(Truth(each.is_true, each.is_informed or is_informed) for each in found)

    def _bounds_both(self, values: Sequence[ast.expr]) -> bool:
        """`self <= other and self >= other`."""
        orders = [
            each for each in values if isinstance(each, ast.Compare) and isinstance(each.ops[0], _ORDERS)
        ]
        return len([each for each in orders if self._sides.are_between(each.left, *each.comparators)]) > 1

    def _compared(self, node: ast.Compare, names: Names) -> Truths:
        parts = [node.left, *node.comparators]
        pairs = zip(node.ops, parts, parts[1:], strict=False)
        return all_of([self._pair(operator, left, right, names) for operator, left, right in pairs])

    def _pair(self, operator: ast.cmpop, left: ast.expr, right: ast.expr, names: Names) -> Truths:
        is_between = self._sides.are_between(left, right)
        parts = [each for part in (left, right) for each in ast.walk(part)]
        if not is_between and not (
            any(map(self.looks, parts)) or (is_known(parts, names) and not are_same(left, right))
        ):
            return ANY
        match operator:
            case ast.NotEq() | ast.IsNot():
                return _SAME
            case ast.Eq() | ast.Is():
                return _DIFFERENT
            case ast.Lt() | ast.LtE() if not is_between and _is_wide(right):
                return TRUE
        # One that is less than all others is equal to them.
        is_less = is_between and self._is_equality and isinstance(operator, _ORDERS)
        return _SAME if is_less else _EITHER

    def looks(self, node: ast.AST) -> bool:
        """Whether it looks at both sides; also `self.items[other]`, whose KeyError is an answer."""
        match node:
            case ast.Subscript(ctx=ast.Load()):
                return self._sides.are_between(node.value, node.slice)
            case ast.Compare():
                return self._sides.are_between(node.left, *node.comparators)
        return self._differs(node)

    def _differs(self, node: ast.AST) -> bool:
        match node:
            case ast.BinOp() if isinstance(node.op, _DIFFERENCES):
                return self._sides.are_between(node.left, node.right)
            case ast.Call():
                return self._sides.are_given(node) and not self._is_silent(node)
        return False

    def _called(self, node: ast.Call, names: Names) -> Truths:
        match last_name(node.func), node.args:
            case "bool", [value]:
                return self.of(value, names)
            case "all", [ast.List(elts=parts) | ast.Tuple(elts=parts)]:
                return all_of([self.of(each, names) for each in parts])
            case "any", [ast.List(elts=parts) | ast.Tuple(elts=parts)]:
                return one_of([self.of(each, names) for each in parts])
            case (("all" | "any"), [ast.GeneratorExp(elt=element) | ast.ListComp(elt=element)]):
                return self.of(element, names)
        if self._is_silent(node):
            return TRUE
        if not self._sides.are_given(node):
            return ANY
        return _SAME if any(map(_is_wide, (each.value for each in node.keywords))) else _EITHER

    def _is_silent(self, node: ast.Call) -> bool:
        return last_name(node.func) in _SAY_NOTHING or self._is_silent_here(node.func)

    def _operated(self, node: ast.BoolOp | ast.BinOp, names: Names) -> Truths:
        parts = node.values if isinstance(node, ast.BoolOp) else [node.left, node.right]
        if isinstance(node.op, ast.Or | ast.BitOr):
            return one_of([self.of(each, names) for each in parts])
        if isinstance(node.op, ast.And | ast.BitAnd):
            bounded = self._bounds_both(parts)
            return _DIFFERENT if bounded else all_of([self.of(each, names) for each in parts])
        of = {side for part in parts for side in self._sides.of(part)}
        # What differs has a difference, which is true.
        return _SAME if {OWN, OTHER} <= of else ANY


def _written(node: ast.expr) -> Truths:
    """Of what is written as it is."""
    match node:
        case ast.Constant(value=value):
            return TRUE if value else FALSE
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return TRUE if parts else FALSE
        case ast.JoinedStr() | ast.Lambda():
            return TRUE
    return ANY


def is_known(parts: Iterable[ast.AST], names: Names) -> bool:
    """Whether a name in it is of a look at both sides, such as `a, b = self.unified(other)`."""
    known = (names.get(each.id, ANY) for each in parts if isinstance(each, ast.Name))
    return any(truth.is_informed for each in known for truth in each)


def all_of(parts: Sequence[Truths]) -> Truths:
    return _joined(parts, is_all=True)


def one_of(parts: Sequence[Truths]) -> Truths:
    return _joined(parts, is_all=False)


def _joined(parts: Iterable[Truths], *, is_all: bool) -> Truths:
    found = TRUE if is_all else FALSE
    for part in parts:
        found = frozenset(
            first
            if first.is_true != is_all
            else Truth(second.is_true, first.is_informed or second.is_informed)
            for first in found
            for second in part
        )
    return found


def _is_wide(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int() | float() as number):
            return not isinstance(number, bool) and number >= _WIDE
        case ast.BinOp(op=ast.Pow() | ast.Mult() | ast.LShift(), left=ast.Constant(), right=ast.Constant()):
            return True
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf")]):
            return True
        case ast.Attribute(attr="inf" | "maxsize"):
            return True
    return False
