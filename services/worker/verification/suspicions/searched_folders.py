"""Finds code of an agent that searches all folders, processes or paths of imports: its tests are there."""

import ast
import re
from collections.abc import Iterator, Sequence

from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.dotted_names import last_name
from services.worker.verification.suspicions.folded_texts import FoldedTexts

_LISTS = frozenset({"walk", "fwalk", "scandir", "listdir", "chdir", "glob", "iglob", "rglob", "iterdir"})
# Of the root itself, or up to it from a working folder.
_ROOT = re.compile(r"/[/.]*(?:\*.*)?|(?:\.\./?){1,20}(?:\*.*)?", re.DOTALL)
_PROGRAMS = frozenset({"find", "grep", "egrep", "fgrep", "rg", "ls", "tree", "du", "fd", "locate"})
# Programs that go through folders, and those that list the arguments of processes. Bounded: code is hostile.
_SEARCHES = re.compile(
    r"(?:^|[;&|(`]\s{0,9})(?:(?:find|ls|tree|du)(?:\s{1,9}-\S{1,40}){0,9}"
    r"|(?:[ef]?grep\s{1,9}-\S{0,9}[rR]|rg\s)[^;&|\n]{0,200}?)\s{1,9}/(?=[\s*;&|]|$)",
    re.MULTILINE,
)
_LISTS_PROCESSES = re.compile(
    r"(?:^|[;&|(`]\s{0,9})(?:ps\s{1,9}(?:-|a|e|x)|pgrep\s|(?:printenv|env)\s{0,9}(?:\||$))", re.MULTILINE
)
_TAKES_ALL = frozenset({"list", "tuple", "set", "sorted", "reversed", "map", "filter", "iter", "enumerate"})


def searches(node: ast.AST, folded: FoldedTexts) -> Iterator[str]:
    """Suspicions of one node of a file."""
    match node:
        case ast.Call():
            yield from _called(node, folded)
        case ast.List() | ast.Tuple() if node.elts:
            yield from _program([folded.known(each) or "" for each in node.elts])
        case ast.For(iter=found) | ast.comprehension(iter=found) if _is_path_of_imports(found):
            yield names.IMPORTED_FROM
        case ast.Subscript(ctx=ast.Load()) if _is_path_of_imports(node.value):
            yield names.IMPORTED_FROM
        case ast.Constant(value=str() as text):
            if _SEARCHES.search(text):
                yield names.SEARCHES
            if _LISTS_PROCESSES.search(text):
                yield names.LOOKS


def reads_environment(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Of a whole file: one of the variables names the file of the test that runs, before `::`."""
    is_of_test = any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and "::" in each.value
        for each in nodes
    )
    if is_of_test and any(
        isinstance(each, ast.Attribute) and each.attr.startswith("environ") for each in nodes
    ):
        yield names.LOOKS


def _called(node: ast.Call, folded: FoldedTexts) -> Iterator[str]:
    func = node.func
    called = last_name(func)
    if called in _LISTS:
        first = folded.known(node.args[0]) if node.args else None
        of = folded.known(func.value) if isinstance(func, ast.Attribute) else None
        is_root = any(each is not None and _ROOT.fullmatch(each) for each in (first, of))
        if is_root or (isinstance(func, ast.Attribute) and any(map(_is_above, ast.walk(func.value)))):
            yield names.SEARCHES
    if called == "values" and isinstance(func, ast.Attribute) and last_name(func.value) == "environ":
        # One of them names the test that runs.
        yield names.LOOKS
    if called in _TAKES_ALL and any(map(_is_path_of_imports, node.args)):
        yield names.IMPORTED_FROM


def _program(texts: list[str]) -> Iterator[str]:
    """The arguments of a program that is started."""
    program, *arguments = texts
    if program in _PROGRAMS and any(_ROOT.fullmatch(each) for each in arguments if each.startswith("/")):
        yield names.SEARCHES
    if program in ("ps", "pgrep", "printenv") or texts == ["env"]:
        yield names.LOOKS


def _is_above(node: ast.AST) -> bool:
    """`path.parents[1]`, which is the root for a file of a working folder."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="parents"), slice=ast.Constant(value=int() as number)):
            return number > 0
        case ast.Subscript(value=ast.Attribute(attr="parents")):
            return True
    return False


def _is_path_of_imports(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "path"
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
    )
