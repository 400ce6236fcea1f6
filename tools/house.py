"""Checks what CONTRIBUTING.md promises of the code: prints `file:line: sentence` and exits with 1 on a break.

Each file is parsed once. A rule of one file adds its faults to the `Facts` of the file; a rule over several
files reads what else the facts hold. The rules that ruff and import-linter can check are theirs.
"""

import ast
import gc
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CODE = ("proctor", "services", "tests", "tools", "protos", "docs", "deploy", ".ci")
PRODUCT = ("proctor", "services")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_FILES_IN_A_FOLDER = 15
# These have no use cases and so no ports: a protocol stands beside the function that takes it.
LIBRARIES = ("proctor/", "services/common/")
TOP_OF_A_SERVICE = {"__main__", "settings", "wiring", "topics", "metrics"}
WIRINGS = {"wiring.py", "topics.py"}
LOG_METHODS = {"debug", "info", "warning", "error", "exception"}
KEYS_WITHOUT_ID = {"run", "batch", "dataset", "project"}
IMPORTS_OF_VALUES = {
    *("collections.abc", "dataclasses", "datetime", "enum", "functools", "hashlib", "hmac", "json", "math"),
    *("bisect", "re", "types", "typing", "urllib.parse", "yaml"),
}
_IGNORE_WITHOUT_REASON = re.compile(
    r"(?<!r\")# (type: ignore(?!\[[a-z, -]+\]  # \S)|noqa(?!: [A-Z0-9, ]+  # \S))"
)
# Dots may end a sentence; a star is any name.
_PATH = re.compile(
    r"(?<![\w./:-])((?:services|proctor|tests|docs|protos|suites|tools|\.ci)/[\w*/.{},-]*[\w*/])"
)
_SHORT_PATH = re.compile(r"`((?:gateway|scheduler|worker|results)/[a-z_/]+)`")
_TEMPLATE_NAME = re.compile(r'(?:show\(|part=)"[a-z_/]+"')
_CHOICE = re.compile(r"(.*)\{(.*)\}(.*)")
_TEXTS = (
    "*.md",
    "docs/**/*.md",
    "protos/**/*.proto",
    "services/**/*.sql",
    "services/**/*.py",
    "proctor/**/*.py",
)
_MADE_TABLE = re.compile(r"\bCREATE (?:UNLOGGED )?(?:TABLE|VIEW)\s+(\w+)|\bALTER TABLE (\w+) RENAME TO (\w+)")
NAMED_TABLE = re.compile(
    r"(?:\b(?:FROM|JOIN|INTO|UPDATE|USING|OF)\s+|,\s*)(?:LATERAL\s+)?([a-z_]+)\b(?!\s*\()"
)
_SQL_COMMENT = re.compile(r"--.*")


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A break of a rule."""

    file: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Facts:
    """Findings in one file, and the parts of it that rules over several files read. `imported` has the full
    name of each thing that the file imports or takes from a module, with its line."""

    file: str
    faults: list[Fault] = field(default_factory=list)
    imported: dict[str, int] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    private_classes: set[str] = field(default_factory=set)

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    def add(self, line: int, sentence: str) -> None:
        self.faults.append(Fault(self.file, line, sentence))


def main() -> int:
    # The nodes of a tree have no circles that matter here, and looking for them takes half of the time.
    with ProcessPoolExecutor(initializer=gc.disable) as processes:
        found = faults(ROOT, partial(processes.map, chunksize=32))
    print("\n".join(map(str, found)) or "The house is in order.")
    return 1 if found else 0


def faults(root: Path, on_each: Callable[..., Iterable[Facts]] = map) -> list[Fault]:
    """All breaks of the rules below a folder, by file and line."""
    files = own_files(root, *CODE)
    facts = list(on_each(facts_of, [root] * len(files), files))
    found = [fault for each in facts for fault in each.faults]
    product = [each for each in facts if each.file.startswith(PRODUCT)]
    found += [*full_folders(files), *import_circles(product), *misplaced_names(product)]
    found += [*uneven_tops(root), *missing_paths(root), *misnumbered_decisions(root)]
    return sorted([*found, *tables_out_of_order(root)])


def own_files(root: Path, *folders: str) -> list[str]:
    """The Python files that people write, relative to `root`."""
    files = [path for folder in folders for path in (root / folder).rglob("*.py") if "_pb2" not in path.name]
    return sorted(str(path.relative_to(root)) for path in files)


def facts_of(root: Path, file: str) -> Facts:
    text = (root / file).read_text(encoding="utf-8")
    facts = Facts(file)
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError as error:
        facts.add(error.lineno or 1, f"the file is not Python: {error.msg}")
        return facts
    sizes(facts, text, nodes)
    contract_names(facts, nodes, root)
    if file.startswith(PRODUCT):
        record_names(facts, nodes)
        unnamed_tasks(facts, nodes)
        loose_log_calls(facts, nodes)
    if Path(file).name in WIRINGS and file.startswith("services/"):
        unnamed_arguments(facts, nodes, new_types(root))
    if file.startswith("proctor/values/"):
        impure_values(facts, nodes)
    return facts


def sizes(facts: Facts, text: str, nodes: Sequence[ast.AST]) -> None:
    lines = text.splitlines()
    if len(lines) > MAX_FILE_LINES:
        facts.add(len(lines), f"{len(lines)} lines, more than {MAX_FILE_LINES}: split the file")
    for number, line in enumerate(lines, start=1):
        if _IGNORE_WITHOUT_REASON.search(line):
            facts.add(
                number, "the finding is ignored without its code and a reason: `# noqa: CODE  # reason`"
            )
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                facts.add(node.lineno, f"{node.name} has {length} lines, more than {MAX_FUNCTION_LINES}")


def full_folders(files: Iterable[str]) -> Iterator[Fault]:
    counts: dict[str, int] = defaultdict(int)
    for file in files:
        counts[str(Path(file).parent)] += not file.endswith("__init__.py")
    for folder, count in counts.items():
        if count > MAX_FILES_IN_A_FOLDER:
            yield Fault(folder, 1, f"{count} Python files, more than {MAX_FILES_IN_A_FOLDER}: make a folder")


def contract_names(facts: Facts, nodes: Sequence[ast.AST], root: Path) -> None:
    """`scheduler_service_pb2` is `scheduler_pb2` everywhere, unless there is a contract of that name too."""
    for node in nodes:
        if not isinstance(node, ast.ImportFrom) or node.module not in ("proctor.v1", "proctor.keda"):
            continue
        for each in node.names:
            name = each.name
            if name.endswith("_pb2_grpc"):
                name = f"{name.removesuffix('_pb2_grpc').removesuffix('_service')}_grpc"
            elif not (root / "proctor/v1" / f"{name.replace('_service_pb2', '_pb2')}.py").is_file():
                name = name.replace("_service_pb2", "_pb2")
            if (each.asname or each.name) != name:
                facts.add(node.lineno, f"import {each.name} as {name}, as all other files do")


def record_names(facts: Facts, nodes: Sequence[ast.AST]) -> None:
    modules = {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            inside = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                facts.imported.setdefault(inside + alias.name, node.lineno)
                modules[alias.asname or alias.name] = inside + alias.name
        elif isinstance(node, ast.ClassDef):
            # Not asyncio.Protocol, which has methods of its own.
            if {"Protocol", "typing.Protocol"} & {_dotted(base) for base in node.bases}:
                facts.ports[node.name] = node.lineno
            if node.name.startswith("_"):
                facts.private_classes.add(node.name)
    for node in nodes:
        if isinstance(node, ast.Attribute) and (module := modules.get(_dotted(node.value))):
            facts.imported.setdefault(f"{module}.{node.attr}", node.lineno)


def _dotted(node: ast.expr) -> str:
    """`a.b` of `a.b` and of `a.b[c]`; `.b` where something else than a name comes before."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    return (
        f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    )


def calls(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    return ((_dotted(node.func), node) for node in nodes if isinstance(node, ast.Call))


def unnamed_tasks(facts: Facts, nodes: Sequence[ast.AST]) -> None:
    """A task without a name cannot be found in a log or in a dump."""
    for name, call in calls(nodes):
        is_named = any(keyword.arg == "name" for keyword in call.keywords)
        if name.endswith("ensure_future") or (name.endswith("create_task") and not is_named):
            facts.add(call.lineno, "the task has no name: pass `name=…` to create_task")


def loose_log_calls(facts: Facts, nodes: Sequence[ast.AST]) -> None:
    """One search finds a run in the logs of all services: the event is constant and facts are fields."""
    for name, call in calls(nodes):
        receiver, _, method = name.rpartition(".")
        if receiver != "log" or method not in LOG_METHODS:
            continue
        for key in KEYS_WITHOUT_ID.intersection(key.arg for key in call.keywords if key.arg):
            facts.add(call.lineno, f"log the id of the {key}, as `{key}_id=…`")
        if call.args and isinstance(call.args[0], ast.JoinedStr):
            facts.add(call.lineno, "the event of a log call is constant; pass facts as fields")


def unnamed_arguments(facts: Facts, nodes: Sequence[ast.AST], values: frozenset[str]) -> None:
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("services.", "proctor.")):
            own |= {alias.asname or alias.name for alias in node.names}
    for name, call in calls(nodes):
        is_class = name.partition(".")[0] in own and name.rpartition(".")[2][0].isupper()
        if is_class and call.args and name not in values:
            facts.add(call.lineno, f"a wiring passes the arguments of {name} by keyword")


def impure_values(facts: Facts, nodes: Sequence[ast.AST]) -> None:
    """`proctor/values` has frozen values and functions of them: no input or output, nothing to await."""
    for node in nodes:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            if not module.startswith("proctor.values") and module not in IMPORTS_OF_VALUES:
                facts.add(getattr(node, "lineno", 1), f"values do not import {module}")
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            facts.add(node.lineno, "values await nothing")
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("open", "print", "input"):
            facts.add(node.lineno, "values do no input or output")
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            if ast.unparse(decorator) not in ("quickly_made", "dataclass(frozen=True, slots=True)"):
                facts.add(decorator.lineno, "a value is a `dataclass(frozen=True, slots=True)`")


def import_circles(product: Iterable[Facts]) -> Iterator[Fault]:
    """Files and folders of one folder depend on each other in one direction."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for facts in product:
        importer = facts.module.split(".")
        for name in facts.imported:
            imported = name.split(".")
            shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(importer, imported, strict=False))])
            if shared < min(len(importer), len(imported)):
                graphs["/".join(importer[:shared])][importer[shared]].add(imported[shared])
    for folder, graph in graphs.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield Fault(folder, 1, f"imports go in a circle: {' -> '.join(reversed(error.args[1]))}")


def misplaced_names(product: Sequence[Facts]) -> Iterator[Fault]:
    """A port that modules beside wirings take stands in `ports.py`; no other module takes a private class."""
    users = [facts for facts in product if Path(facts.file).name not in WIRINGS]
    taken = {name for facts in users for name in facts.imported}
    private = {f"{facts.module}.{name}" for facts in product for name in facts.private_classes}
    for facts in product:
        if "ports" not in facts.module.split(".") and not facts.file.startswith(LIBRARIES):
            for name, line in facts.ports.items():
                if f"{facts.module}.{name}" in taken:
                    yield Fault(facts.file, line, f"other modules take the port {name}: move it to ports.py")
        for name in facts.imported.keys() & private:
            yield Fault(facts.file, facts.imported[name], f"{name} is private to its module")


def uneven_tops(root: Path) -> Iterator[Fault]:
    """All services have the same first files; everything else is in a topic."""
    for service in (path.parent for path in (root / "services").glob("*/__main__.py")):
        expected = TOP_OF_A_SERVICE | ({"postgres"} if (service / "migrations").is_dir() else set())
        for stem in sorted({path.stem for path in service.glob("*.py")} ^ expected):
            problem = "belongs in a topic" if stem not in expected else "is missing; every service has it"
            yield Fault(f"{service.relative_to(root)}/{stem}.py", 1, f"the file {problem}")


def missing_paths(root: Path) -> Iterator[Fault]:
    """A path that a page, a contract, a query or a comment names exists."""
    files = {path for pattern in _TEXTS for path in root.glob(pattern) if "_pb2" not in path.name}
    exists = cache(lambda name: _exists(root, name))
    for path in sorted(files - {root / "CHANGELOG.md"}):
        text = path.read_text(encoding="utf-8")
        # Tests of pages render the templates that routes name.
        text = _TEMPLATE_NAME.sub("", text) if path.name == "routes.py" else text
        named = [(found.start(), found[1]) for found in _PATH.finditer(text)]
        if path == root / "ARCHITECTURE.md":
            named += [(found.start(), f"services/{found[1]}.py") for found in _SHORT_PATH.finditer(text)]
        for at, name in named:
            if not exists(name):
                yield Fault(str(path.relative_to(root)), text.count("\n", 0, at) + 1, f"there is no {name}")


def _exists(root: Path, name: str) -> bool:
    """`tests/x/test_{a,b}.py` names two files."""
    if choice := _CHOICE.fullmatch(name):
        before, names, after = choice.groups()
        return all(_exists(root, before + each + after) for each in names.split(","))
    if name.startswith("proctor/v1/") and name.endswith(".proto"):
        name = f"protos/{name}"
    return bool(list(root.glob(name.rstrip("/")))) if "*" in name else (root / name).exists()


def misnumbered_decisions(root: Path) -> Iterator[Fault]:
    numbers: dict[str, str] = {}
    for path in sorted((root / "docs/decisions").glob("[0-9]*.md")):
        file, number = str(path.relative_to(root)), path.name[:4]
        if number in numbers:
            yield Fault(file, 1, f"{numbers[number]} has the number {number} too")
        numbers[number] = path.name
        if not path.read_text(encoding="utf-8").startswith(f"# {number} "):
            yield Fault(file, 1, f"the heading begins with the number: `# {number} …`")


def tables_out_of_order(root: Path) -> Iterator[Fault]:
    """The SQL of a topic names tables of its own topic and of topics below it, as its imports do."""
    for service, topics in tool(root, "house").get("tables", {}).items():
        owners = {table: topic for topic, tables in topics.items() for table in tables}
        yield from _tables_without_owner(root, service, owners)
        for file in sorted((root / "services" / service).rglob("queries.sql")):
            topic = ".".join(file.parent.relative_to(root / "services" / service).parts)
            code = _SQL_COMMENT.sub("", file.read_text(encoding="utf-8"))
            for found in NAMED_TABLE.finditer(code):
                owner = owners.get(found[1], topic)
                if owner != topic and _depth(root, service, owner) <= _depth(root, service, topic):
                    line = code.count("\n", 0, found.start(1)) + 1
                    sentence = f"{found[1]} is a table of {owner}, which is not below {topic}"
                    yield Fault(str(file.relative_to(root)), line, sentence)


def _tables_without_owner(root: Path, service: str, owners: Mapping[str, str]) -> Iterator[Fault]:
    made: set[str] = set()
    for file in sorted((root / "services" / service / "migrations").glob("*.sql")):
        for table, before, after in _MADE_TABLE.findall(file.read_text(encoding="utf-8")):
            made = (made - {before}) | {table or after}
    for table in sorted(made ^ owners.keys()):
        problem = "is no table" if table not in made else "has no topic"
        yield Fault("pyproject.toml", 1, f"{table} of {service} {problem}: see [tool.house.tables.{service}]")


def _depth(root: Path, service: str, topic: str) -> tuple[int, int]:
    """Topics as import-linter orders them, the highest first, and topics within a topic."""
    top, _, inner = topic.partition(".")
    outer = next(at for at, layer in enumerate(layers(root, f"services.{service}")) if top in layer)
    within = layers(root, f"services.{service}.{top}") if inner else []
    return outer, next((at for at, layer in enumerate(within) if inner in layer), 0)


@cache
def tool(root: Path, name: str) -> Mapping[str, Any]:
    """The part of pyproject.toml for a tool."""
    path = root / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    part: Mapping[str, Any] = project.get("tool", {}).get(name, {})
    return part


def layers(root: Path, container: str) -> list[frozenset[str]]:
    found = [
        each["layers"]
        for each in tool(root, "importlinter")["contracts"]
        if each.get("containers") == [container]
    ]
    return [frozenset(layer.split(" | ")) for each in found for layer in each]


@cache
def new_types(root: Path) -> frozenset[str]:
    """Names of values such as `FileId`, which have one unnamed argument."""
    made = re.compile(r"^(\w+) = NewType\(", re.MULTILINE)
    files = own_files(root, *PRODUCT)
    return frozenset(
        name for file in files for name in made.findall((root / file).read_text(encoding="utf-8"))
    )


if __name__ == "__main__":
    sys.exit(main())
