"""Budgets of CONTRIBUTING.md: what can be checked is not argued."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("proctor", "services", "tests", "protos", ".ci")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_FILES_IN_A_FOLDER = 15
SOURCE = ("proctor", "services")
BROAD_EXCEPTS_PER_1000_LINES = 1.0

KEYS_WITHOUT_ID = frozenset({"run", "batch", "dataset", "project"})
REASONLESS_IGNORE = re.compile(r"(?<!r\")# (type: ignore(?!\[[a-z, -]+\]  # \S)|noqa(?!: [A-Z0-9, ]+  # \S))")


def own_files(*folders: str) -> list[Path]:
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in files if "_pb2" not in path.name]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_file_is_longer_than_the_budget() -> None:
    lengths = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in own_files(*FOLDERS)}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_folder_has_more_files_than_the_budget() -> None:
    files = [path for path in own_files("proctor", "services", "tests") if path.name != "__init__.py"]
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in files if "v1" not in path.parts)
    assert {name: count for name, count in counts.items() if count > MAX_FILES_IN_A_FOLDER} == {}


def test_no_function_is_longer_than_the_budget() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in own_files(*FOLDERS)
        for node in functions(path)
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert too_long == []


def test_broad_excepts_stay_at_the_edges() -> None:
    lines = sum(path.read_text().count("\n") for path in own_files(*SOURCE))
    broad = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in own_files(*SOURCE)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"})
    ]
    assert len(broad) <= BROAD_EXCEPTS_PER_1000_LINES * lines / 1000, broad


def test_every_ignored_finding_has_a_reason() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in own_files(*FOLDERS)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if REASONLESS_IGNORE.search(line)
    ]
    assert bare == []


def test_a_file_of_a_use_case_defines_what_its_name_says() -> None:
    """Its own name, as a class or a function, or its verb with several nouns: `ShowFile`, `ShowDataset`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    grammar = next(each for each in contracts if each["type"] == "file_grammar")
    misnamed = []
    for path in own_files(*(name.replace(".", "/") for name in grammar["services"])):
        verb = path.stem.partition("_")[0]
        is_noun = verb == path.stem or verb not in grammar["verbs"]
        if is_noun or set(path.parent.parts) & set(grammar["technologies"]):
            continue
        defined = [
            node.name
            for node in parsed(path).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        own = {path.stem, path.stem.title().replace("_", "")}
        of_verb = [name for name in defined if re.match(rf"(?i:{verb})(_|[A-Z])", name)]
        if not own & set(defined) and len(of_verb) < 2:
            misnamed.append(f"{path.relative_to(ROOT)}: {', '.join(defined)}")
    assert misnamed == []


def test_log_calls_name_a_thing_by_its_id() -> None:
    """One search finds a run in the logs of all services. The event is constant, and facts are fields."""
    calls = [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path in own_files("services")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "log"
        and node.func.attr in {"debug", "info", "warning", "error", "exception"}
    ]
    assert len(calls) > 100
    assert [where for where, call in calls if {key.arg for key in call.keywords} & KEYS_WITHOUT_ID] == []
    assert [where for where, call in calls if isinstance(call.args[0], ast.JoinedStr)] == []
