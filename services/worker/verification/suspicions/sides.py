"""Which parts of a comparing method are of its own side, and which of the other."""

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
OWN, OTHER = "own", "other"
_CHANGES = frozenset({"update", "__setattr__", "__setitem__", "setdefault", "append", "extend", "add"})
# Calls that say of what kind an object is, and not what it is equal to.
OF_KIND = frozenset({"bool", "callable", "hasattr", "isinstance", "issubclass", "type"})
_MAX_ROUNDS = 5
_MAX_DEPTH = 3


class Sides:
    """`parts` are the nodes of the method, each before its own parts."""

    def __init__(self, method: Method, parts: Sequence[ast.AST]) -> None:
        given = [each.arg for each in (*method.args.posonlyargs, *method.args.args)]
        own = given[:1]
        others = {each.arg for each in parts if isinstance(each, ast.arg)} - {*own}
        self._names: dict[str, set[str]] = {name: {OTHER} for name in others}
        self._names |= {name: {OWN} for name in (*own, "super")}
        self._own = {*own}
        self._parts = parts
        self._sides: dict[int, set[str]] = {}
        for _ in range(_MAX_ROUNDS):
            self._look()
            is_more = False
            for each in parts:
                is_more = self._follow(each) or is_more
            if not is_more:
                break
        self.copies = any(map(self._copies, parts))

    def of(self, node: ast.AST) -> set[str]:
        return self._sides.get(id(node), set())

    def are_between(self, *nodes: ast.AST) -> bool:
        """Whether one of the parts is of its own side only, and another has the other in it."""
        of = [self.of(each) for each in nodes]
        return {OWN} in of and any(OTHER in each for each in of)

    def are_given(self, call: ast.Call) -> bool:
        """Whether a call is of the one side, and of the other: no argument has both of them by itself."""
        return self.are_between(call.func, *call.args, *(each.value for each in call.keywords))

    def _look(self) -> None:
        """Each node once, after its parts: code is hostile, and may be deep."""
        for node in reversed(self._parts):
            found = {*self._names.get(node.id, ())} if isinstance(node, ast.Name) else set()
            for each in ast.iter_child_nodes(node):
                found |= self._sides.get(id(each), set())
            self._sides[id(node)] = set() if _is_of_neither(node) else found

    def _follow(self, node: ast.AST) -> bool:
        """Whether a name is now known to be of one more side."""
        pairs: Iterator[tuple[ast.expr, ast.expr]]
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = _paired(targets, value)
            case ast.NamedExpr(target=target, value=value):
                pairs = iter([(target, value)])
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = iter([(target, value)])
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                pairs = _looped(target, value)
            case _:
                return False
        is_more = False
        for target, value in pairs:
            sides = self.of(value)
            for each in ast.walk(target):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    known = self._names.setdefault(each.id, set())
                    is_more = is_more or not sides <= known
                    known |= sides
        return is_more

    def _copies(self, node: ast.AST) -> bool:
        match node:
            case ast.Assign(targets=targets, value=value):
                return any(self._is_part(each) for each in targets) and OTHER in self.of(value)
            case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name in _CHANGES:
                is_own = self._is_rooted(owner) or (name == "__setattr__" and self._is_first(node))
                return is_own and any(OTHER in self.of(each) for each in node.args)
            case ast.Call(func=ast.Name(id="setattr")):
                return self._is_first(node) and any(OTHER in self.of(each) for each in node.args)
        return False

    def _is_first(self, call: ast.Call) -> bool:
        return bool(call.args) and self._is_rooted(call.args[0])

    def _is_part(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute | ast.Subscript) and self._is_rooted(node)

    def _is_rooted(self, node: ast.expr) -> bool:
        """`self`, its attributes, their items, and `vars(self)`."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars":
            return self._is_first(node)
        return isinstance(node, ast.Name) and node.id in self._own


def _is_of_neither(node: ast.AST) -> bool:
    """Whether nothing is left of a side: `type(x)`, `x * 0`, `x % 1`, `x[:0]`, `x - x` and `x == x`."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in OF_KIND
        case ast.Attribute(attr="__class__"):
            return True
        case ast.BinOp(op=ast.Mult() | ast.BitAnd() | ast.Pow(), right=ast.Constant(value=0)):
            return True
        case ast.BinOp(op=ast.Mult() | ast.BitAnd(), left=ast.Constant(value=0)):
            return True
        case ast.BinOp(op=ast.Mod(), right=ast.Constant(value=1)):
            return True
        case ast.Subscript(slice=ast.Slice(lower=None, upper=ast.Constant(value=0))):
            return True
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return are_same(left, right)
    return False


def are_same(left: ast.AST, right: ast.AST, depth: int = 0) -> bool:
    """Whether two short expressions are written alike."""
    if type(left) is not type(right) or depth > _MAX_DEPTH:
        return False
    match left, right:
        case ast.Name(id=first), ast.Name(id=second):
            return first == second
        case ast.Attribute(), ast.Attribute():
            return left.attr == right.attr and are_same(left.value, right.value, depth + 1)
        case ast.Call(args=[first]), ast.Call(args=[second]):
            of = are_same(left.func, right.func, depth + 1)
            return of and are_same(first, second, depth + 1)
    return False


def _paired(targets: Sequence[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in targets:
        match target, value:
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                yield from zip(names, values, strict=True)
            case _:
                yield target, value


def _looped(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`for a, b in zip(self, other)`."""
    match target, value:
        case ast.Tuple(elts=names), ast.Call(args=values) if len(names) == len(values):
            yield from zip(names, values, strict=True)
        case _:
            yield target, value
