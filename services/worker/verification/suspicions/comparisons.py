"""Tells methods that compare from those that answer without a look at both sides."""

import ast
from collections.abc import Iterator, Sequence

from services.worker.verification.suspicions.dotted_names import last_name

# Calls that say of an object what it is, and not what it is equal to.
_OF_KIND = frozenset({"bool", "callable", "hasattr", "isinstance", "issubclass", "type"})
_CHANGES = frozenset({"update", "__setattr__", "__setitem__", "setdefault", "append", "extend", "add"})
_BLOCKS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_OWN, _OTHER = "own", "other"
_MAX_ROUNDS = 5


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
                    if isinstance(each, ast.FunctionDef) and each.name == "__bool__":
                        self._truths[node.name] = each

    def compares_nothing(self, node: _BLOCKS) -> bool:
        """Whether it answers without a look at both sides. `NotImplemented` leaves that to the other.

        One that makes its own side like the other, or compares the other with itself, looks at no two sides.
        """
        parts = list(ast.walk(node))
        answers = [node.body] if isinstance(node, ast.Lambda) else []
        answers += [each.value for each in parts if isinstance(each, ast.Return) and each.value]
        answers = [each for each in answers if not _is_left_to_other(each)]
        sides = _Sides(node, parts)
        if sides.copies or any(map(_is_always, answers)):
            return bool(answers)
        is_equal = any(map(self._is_for_own_kind, parts)) or any(self._looks(each, sides) for each in parts)
        return bool(answers) and not is_equal

    def _is_for_own_kind(self, node: ast.AST) -> bool:
        """All objects of a class without attributes are equal, and no others."""
        match node:
            case ast.If(
                test=ast.UnaryOp(
                    op=ast.Not(), operand=ast.Call(func=ast.Name(id="isinstance"), args=[_, kind])
                ),
                body=[ast.Return(value=ast.Name() as answer)],
            ):
                return _is_left_to_other(answer) and last_name(kind) in self._classes | {"__class__"}
        return False

    def _looks(self, node: ast.AST, sides: "_Sides") -> bool:
        match node:
            case ast.Compare():
                # All others are not the same object.
                if all(isinstance(each, ast.IsNot) for each in node.ops):
                    return False
                of = [sides.of(each) for each in (node.left, *node.comparators)]
                return {_OWN} in of and any(_OTHER in each for each in of)
            case ast.Subscript(ctx=ast.Load()):
                # KeyError and IndexError are answers too.
                return sides.of(node.value) == {_OWN} and _OTHER in sides.of(node.slice)
            case ast.BinOp():
                return sides.of(node.left) == {_OWN} and sides.of(node.right) == {_OTHER}
            case ast.Call():
                is_kind = isinstance(node.func, ast.Name) and node.func.id in _OF_KIND
                return not is_kind and not self._says_nothing(node.func) and sides.are_given(node)
        return False

    def _says_nothing(self, func: ast.expr) -> bool:
        """Whether a function of the file compares nothing, and calls nothing that might."""
        name = last_name(func)
        if name == "__class__" or (isinstance(func, ast.Call) and last_name(func.func) == "type"):
            # A copy of the other: `type(self)(other)`.
            return True
        if name not in self._silent:
            truth, found = self._truths.get(name), self._functions.get(name, [])
            self._silent[name] = (
                not _has(truth, (ast.Compare, ast.Call, ast.Attribute))
                if truth
                else bool(found) and not any(_has(each, (ast.Compare, ast.Call, ast.BinOp)) for each in found)
            )
        return self._silent[name]


class _Sides:
    """Which names of a method are of its own side, and which of the other."""

    def __init__(self, node: _BLOCKS, parts: Sequence[ast.AST]) -> None:
        given = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        own = given[:1]
        others = {each.arg for each in parts if isinstance(each, ast.arg)} - {*own}
        self._names: dict[str, set[str]] = {name: {_OTHER} for name in others}
        self._names |= {name: {_OWN} for name in (*own, "super")}
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

    def _look(self) -> None:
        """Each node once, after its parts: code is hostile, and may be deep."""
        for node in reversed(self._parts):
            found = {*self._names.get(node.id, ())} if isinstance(node, ast.Name) else set()
            for each in ast.iter_child_nodes(node):
                found |= self._sides.get(id(each), set())
            self._sides[id(node)] = found

    def are_given(self, call: ast.Call) -> bool:
        """Whether a call is of the one side, and of the other: no argument has both of them by itself."""
        parts = [call.func, *call.args, *(each.value for each in call.keywords)]
        of = [self.of(each) for each in parts]
        return {_OWN} in of and any(_OTHER in each for each in of)

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
                return any(self._is_part(each) for each in targets) and _OTHER in self.of(value)
            case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name in _CHANGES:
                is_own = self._is_rooted(owner) or (name == "__setattr__" and self._is_first(node))
                return is_own and any(_OTHER in self.of(each) for each in node.args)
            case ast.Call(func=ast.Name(id="setattr")):
                return self._is_first(node) and any(_OTHER in self.of(each) for each in node.args)
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


def _is_left_to_other(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "NotImplemented"


def _is_always(node: ast.expr) -> bool:
    """Whether it is true of any two sides: a list that is not empty, or with `or True`."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return bool(parts)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(isinstance(each, ast.Constant) and each.value for each in values)
        case ast.Compare(left=ast.Compare(), ops=[ast.IsNot()], comparators=[ast.Constant()]):
            return True
    return False


def _has(node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(each, kinds) for each in ast.walk(node))
