"""Tells methods that compare from those that answer without a look at both sides."""

import ast

# Calls that say of an object what it is, and not what it is equal to.
_OF_KIND = frozenset({"bool", "callable", "hasattr", "isinstance", "issubclass", "type"})


def compares_nothing(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether it answers without a look at both sides. `NotImplemented` leaves that to the other."""
    own = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][:1]
    parts = list(ast.walk(node))
    is_answer = isinstance(node, ast.Lambda) or any(
        isinstance(each, ast.Return) and each.value for each in parts
    )
    used = {each.id for each in parts if isinstance(each, ast.Name)}
    others = {each.arg for each in parts if isinstance(each, ast.arg)} - {*own}
    looks_at_both = used & {*own, "super"} and used & others and any(map(_may_compare, parts))
    return is_answer and "NotImplemented" not in used and not looks_at_both


def _may_compare(node: ast.AST) -> bool:
    """Not by what an object is, or whether it is there."""
    if isinstance(node, ast.Compare):
        return not all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops)
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in _OF_KIND)
    return False
