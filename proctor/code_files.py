"""Files that a Python file of a task needs: those that it imports from the folder of tasks, or names."""

import ast
import hashlib
import posixpath
from collections.abc import Callable, Iterator, Mapping

from proctor.task_names import path_beside

# Other modules of this package are installed ones.
TASKS_PACKAGE = "lm_eval.tasks"
# What code may read beside itself: a text that ends so may name a file.
_DATA_SUFFIXES = (".json", ".jsonl", ".txt", ".csv", ".tsv", ".yaml", ".yml")
_MAX_NAME_CHARACTERS = 200

ReadFile = Callable[[str], bytes]


def code_files(path: str, read: ReadFile) -> Mapping[str, bytes]:
    """The file and those that it needs, and they need, by their paths. `read` raises OSError.

    Raises OSError where the file itself cannot be read; other ones are passed over.
    """
    found = {path: read(path)}
    missing: set[str] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        for needed in _needed(file, found[file]) if file.endswith(".py") else ():
            if needed in found or needed in missing:
                continue
            try:
                found[needed] = read(needed)
            except OSError:
                missing.add(needed)
                continue
            waiting.append(needed)
    return found


def files_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over paths and contents, in hex."""
    parts = [hashlib.sha256(each).digest() for path in sorted(files) for each in (path.encode(), files[path])]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def registered_filter(content: bytes, name: str) -> str:
    """The class of a Python file that registers itself as a filter of this name; "" where none does."""
    if b"register_filter" not in content:
        return ""
    for node in ast.walk(_parsed(content)):
        if isinstance(node, ast.ClassDef) and any(_registers(each, name) for each in node.decorator_list):
            return node.name
    return ""


def reached_names(files: Mapping[str, bytes], function: str) -> frozenset[str]:
    """Whatever the function names, and the functions of these files that it names: in whichever of them."""
    definitions: dict[str, list[ast.AST]] = {}
    for path, content in files.items():
        for node in ast.walk(_parsed(content)) if path.endswith(".py") else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                definitions.setdefault(node.name, []).append(node)
    reached: set[str] = set()
    waiting = [function]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for each in (inner for node in definitions.get(name, ()) for inner in ast.walk(node)):
            waiting += [each.id] if isinstance(each, ast.Name) else []
            waiting += [each.attr] if isinstance(each, ast.Attribute) else []
    return frozenset(reached)


def _registers(decorator: ast.expr, name: str) -> bool:
    if not isinstance(decorator, ast.Call) or not decorator.args:
        return False
    called, given = decorator.func, decorator.args[0]
    word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return word == "register_filter" and isinstance(given, ast.Constant) and given.value == name


def function_file(name: str, named_in: str, has: Callable[[str], bool]) -> tuple[str, str]:
    """Path and function of `utils.process_docs` in a YAML file: beside that, or from the root."""
    module, _, function = name.rpartition(".")
    beside = path_beside(named_in, f"{module.replace('.', '/')}.py") if module else ""
    from_root = f"{module.removeprefix(f'{TASKS_PACKAGE}.').replace('.', '/')}.py"
    is_of_root = module.startswith(f"{TASKS_PACKAGE}.") and not has(beside)
    return from_root if is_of_root else beside, function


def _needed(file: str, content: bytes) -> Iterator[str]:
    for node in ast.walk(_parsed(content)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(_base(file, alias.name, 0), ())
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield from _modules(_base(file, node.module or "", node.level), names)
        elif isinstance(node, ast.Constant) and _may_name_file(node.value):
            yield path_beside(file, str(node.value))


def _parsed(content: bytes) -> ast.AST:
    """Nothing where it is no Python: whoever executes it says so."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _may_name_file(value: object) -> bool:
    return isinstance(value, str) and value.endswith(_DATA_SUFFIXES) and len(value) <= _MAX_NAME_CHARACTERS


def _base(file: str, module: str, level: int) -> str:
    """The path of a module without its suffix; "" for an installed one."""
    inside = module.replace(".", "/")
    if level:
        return path_beside(file, posixpath.join(*[".."] * (level - 1), inside) or ".")
    if module == TASKS_PACKAGE or module.startswith(f"{TASKS_PACKAGE}."):
        return inside.removeprefix("lm_eval/tasks").strip("/") or "."
    return path_beside(file, inside)


def _modules(base: str, names: tuple[str, ...]) -> Iterator[str]:
    for path in (base, *(posixpath.normpath(f"{base}/{name}") for name in names if name != "*")):
        yield f"{path}.py"
        yield posixpath.normpath(f"{path}/__init__.py")
