"""Finds code of an agent that reads its tests: by the arguments of its process, or in its working folder.

Programs do both for those who start them. Their part of a file is told from the functions that tests call.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.dotted_names import last_name
from services.worker.verification.suspicions.folded_texts import UNKNOWN, FoldedTexts

_READS = frozenset({"open", "read_text", "read_bytes", "fdopen", "memory_map", "mmap"})
_READS |= {"readlines", "read_csv", "loadtxt", "fromfile", "genfromtxt", "check_output", "popen", "getlines"}
_LISTS = frozenset({"walk", "fwalk", "scandir", "listdir", "glob", "iglob", "rglob", "iterdir"})
_HERE = re.compile(r"(?:\./?)*")
_TESTS = tuple(PurePosixPath(*folders, "test_x.py") for folders in ((), ("tests",), ("x", "tests")))
# What a search looks for, in names or in what it reads.
_HINTS = re.compile(r"\btests?\b|test_|_test|\.py\b|\bassert|==")
_PROGRAM = re.compile(r"_*(?:main|cli|usage)|(?:parse|get|read)_(?:arg|opt|cmd|command)\w*")
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef


def reads_tests(tree: ast.AST, folded: FoldedTexts) -> Iterator[str]:
    """Suspicions of a whole file."""
    if not isinstance(tree, ast.Module):
        return
    parts = _Parts(tree)
    reading = parts.that_reach(lambda nodes: any(map(_is_read, nodes)))
    hinted = parts.that_reach(lambda nodes: any(_is_hint(each, folded) for each in nodes))
    for name, nodes in parts.of_tests():
        if name not in reading:
            continue
        if any(map(parts.is_arguments, nodes)):
            yield names.ARGUMENTS
        if name in hinted and any(_lists_here(each, folded) for each in nodes):
            yield names.OWN_FOLDER


class _Parts:
    """The functions of a file, and, without a name, what is executed when it is imported."""

    def __init__(self, tree: ast.Module) -> None:
        guards = [each for each in tree.body if _is_guard(each)]
        self._nodes: dict[str, list[ast.AST]] = {"": []}
        for part in tree.body:
            self._nodes[""] += [] if part in guards else _at_import(part)
        for node in ast.walk(tree):
            if isinstance(node, _SCOPES):
                self._nodes.setdefault(node.name, []).extend(ast.walk(node))
        self._calls = {name: _named(nodes) & self._nodes.keys() for name, nodes in self._nodes.items()}
        self._callers: dict[str, set[str]] = {name: set() for name in self._nodes}
        for name, called in self._calls.items():
            for each in called - {name}:
                self._callers[each].add(name)
        self._of_guards = _named(each for guard in guards for each in ast.walk(guard))
        self._arguments = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "sys"
            for alias in node.names
            if alias.name in ("argv", "orig_argv")
        }

    def of_tests(self) -> Iterator[tuple[str, Sequence[ast.AST]]]:
        """What others than the program of the file may call, and what they call, whatever its name is."""
        callers = {name for name in self._nodes if name and not self._is_of_program(name)}
        for name in _closure({*callers, *self._calls[""]} - {""}, self._calls):
            yield name, self._nodes[name]
        if any(map(_is_search, self._nodes[""])):
            yield "", self._nodes[""]

    def that_reach(self, is_one: Callable[[Sequence[ast.AST]], bool]) -> set[str]:
        """Names of those that are one, or call one."""
        return _closure({name for name, nodes in self._nodes.items() if is_one(nodes)}, self._callers)

    def is_arguments(self, node: ast.AST) -> bool:
        match node:
            case ast.Attribute(attr="argv" | "orig_argv"):
                return True
            case ast.Name(id=name, ctx=ast.Load()):
                return name in self._arguments
        return False

    def _is_of_program(self, name: str) -> bool:
        """By its name, or since only the program calls it."""
        if _PROGRAM.fullmatch(name):
            return True
        callers = self._callers[name]
        return (name in self._of_guards or bool(callers)) and all(map(_PROGRAM.fullmatch, callers))


def _closure(begun: set[str], following: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set(begun), list(begun)
    while waiting:
        more = following[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def _is_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test)
    )


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What is executed at once: not the bodies of functions."""
    if isinstance(node, _SCOPES):
        return
    yield node
    for each in ast.iter_child_nodes(node):
        yield from _at_import(each)


def _named(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        each.attr if isinstance(each, ast.Attribute) else each.id
        for each in nodes
        if isinstance(each, ast.Attribute | ast.Name)
    }


def _is_search(node: ast.AST) -> bool:
    """Scripts read the file that they are given by its place; a search goes through all of them."""
    return isinstance(node, ast.For | ast.comprehension | ast.While)


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in _READS


def _lists_here(node: ast.AST, folded: FoldedTexts) -> bool:
    """Lists the working folder, or finds Python files below it."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _LISTS:
        return False
    first = folded.text(node.args[0]) if node.args else None
    pattern = first or ""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if last_name(node.func) in ("walk", "fwalk", "scandir", "listdir"):
        return not node.args or _is_here(node.args[0], folded)
    is_glob = owner is None or (isinstance(owner, ast.Name) and owner.id == "glob")
    is_here = is_glob or (owner is not None and _is_here(owner, folded))
    if last_name(node.func) == "iterdir":
        return is_here
    if UNKNOWN in pattern or pattern.startswith("/") or not is_here:
        return False
    return any(each.match(pattern.replace("**/", "*/")) for each in _TESTS if pattern)


def _is_here(node: ast.expr, folded: FoldedTexts) -> bool:
    text = folded.text(node)
    if text is not None:
        return bool(_HERE.fullmatch(text))
    match node:
        case ast.Attribute(attr="curdir"):
            return True
        case ast.Call(func=func, args=[]):
            name = last_name(func)
            if name in ("absolute", "resolve") and isinstance(func, ast.Attribute):
                return _is_here(func.value, folded)
            return name in ("getcwd", "getcwdb", "cwd", "Path", "PurePath", "PosixPath")
        case ast.Call(func=func, args=[inner]):
            is_same = last_name(func) in ("Path", "abspath", "realpath", "str", "fspath")
            return is_same and _is_here(inner, folded)
    return False


def _is_hint(node: ast.AST, folded: FoldedTexts) -> bool:
    if not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
        return False
    return bool(_HINTS.search(folded.text(node) or ""))
