"""Checks the size of a parsed template and inserts the accounting of its costs before it is compiled."""

from collections.abc import Iterator

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from services.scheduler.suites.templates.errors import UnfitTemplate

# Jinja compiles before the budget counts: these bound the compiler.
MAX_SOURCE_CHARACTERS = 256 * 1024
MAX_PARTS = 5_000
MAX_DEPTH = 100

# Filter names that are not identifiers, so no template can call them.
LOOP, MACRO, CHARGED, JOIN = "(loop)", "(macro)", "(charged)", "(join)"

_REFUSED = {
    nodes.Extends: "extends", nodes.Include: "include", nodes.Import: "import", nodes.FromImport: "import",
    nodes.Block: "block", nodes.EvalContextModifier: "autoescape",
}  # fmt: skip


def check_size(template: nodes.Template) -> None:
    for count, (depth, node) in enumerate(_with_depth(template), start=1):
        if count > MAX_PARTS:
            raise UnfitTemplate(f"it has more than {MAX_PARTS:,} parts")
        if depth > MAX_DEPTH:
            raise UnfitTemplate(f"its parts are nested more than {MAX_DEPTH} deep")
        for refused, word in _REFUSED.items():
            if isinstance(node, refused):
                raise UnfitTemplate(f"line {node.lineno} of the template: there is no {word!r} here")
        if isinstance(node, nodes.For) and node.recursive:
            raise UnfitTemplate(f"line {node.lineno} of the template: there are no recursive loops here")


def _with_depth(root: nodes.Node) -> Iterator[tuple[int, nodes.Node]]:
    waiting = [(1, root)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        waiting.extend((depth + 1, child) for child in node.iter_child_nodes())


class CostWriter(NodeTransformer):
    """Wraps processed values in counting filters.

    These are loop iterables, macro entries, operands of comparisons and `~`, and sliced or subscripted
    values. The sandbox counts calls, operators and filters itself.
    """

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # the visitor's naming
        cost = _cost(node)
        self.generic_visit(node)
        node.iter = _filtered(node.iter, LOOP, *cost)
        return node

    def visit_Macro(self, node: nodes.Macro | nodes.CallBlock) -> nodes.Node:  # noqa: N802  # jinja's name
        cost = _cost(node)
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_filtered(nodes.Const(1), MACRO, *cost), lineno=node.lineno))
        return node

    visit_CallBlock = visit_Macro  # noqa: N815  # jinja's name

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  # jinja's name
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes), JOIN)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802  # jinja's name
        self.generic_visit(node)
        node.expr = _charged(node.expr)
        for operand in node.ops:
            operand.expr = _charged(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802  # jinja's name
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _charged(node.node)
        else:
            node.arg = _charged(node.arg)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802  # jinja's name
        self.generic_visit(node)
        node.key = _charged(node.key)
        return node


def _cost(node: nodes.Node) -> tuple[nodes.Const, nodes.Const]:
    """Number of parts evaluated and characters of plain text written in one evaluation."""
    parts = list(node.find_all(nodes.Node))
    plain = sum(len(part.data) for part in parts if isinstance(part, nodes.TemplateData))
    return nodes.Const(len(parts)), nodes.Const(plain)


def _charged(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filtered(node, CHARGED)


def _filtered(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)
