"""What a comparing method answers to another object that differs from its own.

The method is executed once, with truths in the place of values: of each statement is asked where a look at
both sides leads if they differ. Where a condition says nothing of that, both of its branches are taken.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from services.worker.verification.suspicions.sides import Method, Sides
from services.worker.verification.suspicions.truths import ANY, MAX_DEPTH, Expressions, Names, Truth, Truths


@dataclass(frozen=True, slots=True)
class _State:
    """`is_informed`: a look at both sides led here."""

    is_informed: bool = False
    is_reached: bool = True
    names: Names = field(default_factory=dict)

    def after(self, found: Truths) -> "_State":
        return replace(self, is_informed=self.is_informed or any(each.is_informed for each in found))

    def named(self, name: str, found: Truths) -> "_State":
        return replace(self, names={**self.names, name: found})

    def joined(self, other: "_State") -> "_State":
        """Both ways that lead here."""
        if not (self.is_reached and other.is_reached):
            return self if self.is_reached else other
        all_names = {*self.names, *other.names}
        names = {name: self.names.get(name, ANY) | other.names.get(name, ANY) for name in all_names}
        return _State(is_informed=self.is_informed or other.is_informed, names=names)


class Answers:
    def __init__(self, sides: Sides, expressions: Expressions) -> None:
        self._sides = sides
        self._expressions = expressions
        self._found: set[Truth] = set()
        self._depth = 0

    def of(self, method: Method) -> Truths:
        """Empty where it leaves all answers to the other, or gives none."""
        given = method.args
        ends = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
        state = _State(names={each.arg: self._expressions.of(value, {}) for each, value in ends})
        if isinstance(method, ast.Lambda):
            self._answer(method.body, state)
        else:
            self._execute(method.body, state)
        return frozenset(self._found)

    def _answer(self, value: ast.expr, state: _State) -> None:
        if isinstance(value, ast.Name) and value.id == "NotImplemented":
            return
        found = self._expressions.of(value, state.names)
        self._found |= {replace(each, is_informed=each.is_informed or state.is_informed) for each in found}

    def _execute(self, statements: Sequence[ast.stmt], state: _State) -> _State:
        self._depth += 1
        for each in statements if self._depth <= MAX_DEPTH else ():
            if not state.is_reached:
                break
            state = self._after(each, state)
        self._depth -= 1
        return state

    def _after(self, node: ast.stmt, state: _State) -> _State:
        match node:
            case ast.Return():
                if node.value is not None:
                    self._answer(node.value, state)
                return replace(state, is_reached=False)
            case ast.Raise():
                if state.is_informed:
                    # No test passes by it.
                    self._found.add(Truth(is_true=False, is_informed=True))
                return replace(state, is_reached=False)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                return self._assigned(node, state)
            case ast.Assert():
                return self._asserted(node, state)
        return self._block(node, state)

    def _block(self, node: ast.stmt, state: _State) -> _State:
        match node:
            case ast.If():
                return self._branch(node, state)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._execute(node.orelse, state.joined(self._execute(node.body, state)))
            case ast.With() | ast.AsyncWith():
                return self._execute(node.body, state)
            case ast.Try():
                return self._tried(node, state)
            case ast.Match():
                for case in node.cases:
                    state = state.joined(self._execute(case.body, state))
        return state

    def _assigned(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign, state: _State) -> _State:
        if node.value is None:
            return state
        found = self._expressions.of(node.value, state.names)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for name in _names(target):
                before = state.names.get(name, ANY) if isinstance(node, ast.AugAssign) else frozenset()
                state = state.named(name, found | before)
        return state

    def _branch(self, node: ast.If, state: _State) -> _State:
        test = self._expressions.of(node.test, state.names)
        entered = state.after(test)
        ways = [node.body] if any(each.is_true for each in test) else []
        ways += [node.orelse] if any(not each.is_true for each in test) else []
        after = replace(entered, is_reached=False)
        for way in ways:
            after = after.joined(self._execute(way, entered))
        return after

    def _asserted(self, node: ast.Assert, state: _State) -> _State:
        test = self._expressions.of(node.test, state.names)
        after = state.after(test)
        if any(not each.is_true for each in test):
            self._found.add(Truth(is_true=False, is_informed=after.is_informed))
        return replace(after, is_reached=any(each.is_true for each in test))

    def _tried(self, node: ast.Try, state: _State) -> _State:
        before = set(self._found)
        after = self._execute(node.body, state)
        if node.handlers:
            parts = [each for statement in node.body for each in ast.walk(statement)]
            if any(isinstance(each, ast.Raise | ast.Assert) for each in parts):
                # What the body raises goes on in a handler.
                self._found = before | {each for each in self._found if each.is_true}
            looks = state.is_informed or any(map(self._expressions.looks, parts))
            for handler in node.handlers:
                after = after.joined(self._execute(handler.body, replace(state, is_informed=looks)))
        after = self._execute(node.orelse, after)
        if any(isinstance(each, ast.Return) for each in node.finalbody):
            # It answers in the place of what came before.
            self._found = before
            after = replace(after, is_reached=True)
        ended = self._execute(node.finalbody, replace(after, is_reached=True))
        return replace(ended, is_reached=ended.is_reached and after.is_reached)


def _names(target: ast.expr) -> Iterator[str]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return (each.id for each in parts if isinstance(each, ast.Name))
