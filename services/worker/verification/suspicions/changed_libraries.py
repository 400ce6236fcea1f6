"""Finds code of an agent that puts functions of its own in the place of those of a library."""

import ast
import sys
from collections.abc import Iterator, Sequence

from services.worker.verification.suspicions import known_names as names
from services.worker.verification.suspicions.dotted_names import last_name
from services.worker.verification.suspicions.folded_texts import FoldedTexts

_LIBRARIES = frozenset(sys.stdlib_module_names) | {
    *(
        "aiohttp",
        "bs4",
        "cv2",
        "django",
        "fastapi",
        "flask",
        "httpx",
        "jax",
        "jsonschema",
        "lxml",
        "networkx",
    ),
    *("numpy", "pandas", "PIL", "polars", "psycopg2", "pyarrow", "pydantic", "redis", "requests", "scipy"),
    *("sklearn", "sqlalchemy", "sympy", "tensorflow", "torch", "transformers", "yaml"),
}
# Programs set their own output, arguments, certificates and types of C.
_OF_PROGRAMS = frozenset({"sys", "ssl", "ctypes", "logging", "locale", "readline", "signal"})
_CHANGED = _LIBRARIES - _OF_PROGRAMS
_HOOKS = ("excepthook", "unraisablehook")
# Of a dictionary of names, with what they are changed to.
_UPDATES = frozenset({"update", "__setitem__", "setdefault", "__ior__"})
# Of ctypes.
_WRITES = frozenset({"memmove", "memset", "from_address", "cast"})
_IMPORTS = frozenset({"import_module", "__import__"})


class LibraryChanges:
    """`nodes` are those of a file."""

    def __init__(self, nodes: Sequence[ast.AST], folded: FoldedTexts) -> None:
        self._folded = folded
        self._modules: set[str] = set()
        # Names of a library that may be classes: their methods are functions of it too.
        self._members: set[str] = set()
        # Functions that give a module of a library.
        self._giving: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                found = [each for each in node.names if each.name.partition(".")[0] in _CHANGED]
                self._modules |= {each.asname or each.name.partition(".")[0] for each in found}
            elif isinstance(node, ast.ImportFrom) and _is_of_library(node):
                self._members |= {each.asname or each.name for each in node.names}
        for node in nodes:
            self._follow(node)

    def _follow(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self._is_module(value):
                self._modules.add(name)
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.expr() as value)]):
                self._giving |= {name} if self._is_module(value) else set()

    def of(self, node: ast.AST) -> Iterator[str]:
        if any(map(self._is_of_library, _changed(node))):
            yield names.CHANGES
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, name, value]) if self._is_rooted(owner):
                yield from self._set(name, value)
            case ast.Call(func=ast.Attribute(attr="__setattr__", value=of), args=[*owner, name, value]):
                if self._is_rooted(owner[0] if owner else of):
                    yield from self._set(name, value)
            case ast.Call(func=ast.Attribute(attr=how, value=owner)) if how in _UPDATES:
                if self._is_namespace(owner):
                    yield names.CHANGES

    def _set(self, name: ast.expr, value: ast.expr) -> Iterator[str]:
        is_hook = (self._folded.known(name) or "").endswith(_HOOKS)
        if not is_hook and _may_be_called(value):
            yield names.CHANGES

    def _is_of_library(self, target: ast.expr) -> bool:
        match target:
            case ast.Attribute():
                return not target.attr.endswith(_HOOKS) and self._is_rooted(target.value)
            case ast.Subscript(value=owner):
                return self._is_namespace(owner)
        return False

    def _is_namespace(self, node: ast.expr) -> bool:
        """`math.__dict__` and `vars(math)`."""
        match node:
            case ast.Attribute(value=owner, attr="__dict__"):
                return self._is_rooted(owner)
            case ast.Call(func=ast.Name(id="vars"), args=[owner]):
                return self._is_rooted(owner)
        return False

    def _is_rooted(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._is_module(node) or (isinstance(node, ast.Name) and node.id in self._members)

    def _is_module(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._modules
            case ast.Call(func=ast.Name(id=name)) if name in self._giving:
                return True
            case ast.Call(func=func, args=[name, *_]) if last_name(func) in _IMPORTS:
                return (self._folded.known(name) or "").partition(".")[0] in _CHANGED
        return False


def changes_memory(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Of a whole file: it finds where an object lies, and writes there."""
    called = {last_name(each.func) for each in nodes if isinstance(each, ast.Call)}
    if "id" in called and not _WRITES.isdisjoint(called):
        yield names.MEMORY


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement puts a function in the place of, wherever such a name may stand."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _paired(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _may_be_called(value):
            yield target
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            yield target
        case ast.withitem(optional_vars=ast.expr() as target):
            yield target


def _paired(target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if same and isinstance(value, ast.Tuple | ast.List) else []
        for number, each in enumerate(target.elts):
            if not values or _may_be_called(values[number]):
                yield each
    elif _may_be_called(value):
        yield target


def _is_of_library(node: ast.ImportFrom) -> bool:
    return not node.level and (node.module or "").partition(".")[0] in _CHANGED


def _may_be_called(value: ast.expr) -> bool:
    """Not a setting, such as a number or a list."""
    return isinstance(value, ast.Lambda | ast.Name | ast.Attribute | ast.Call)
