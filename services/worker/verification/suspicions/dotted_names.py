"""Reads names of code such as `os.path.join`."""

import ast


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
