"""Each rule of `tools/house.py` finds the file that breaks it, with its line."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools import house

# Not where a linter would find it.
MARK = "noqa"
LONG_FUNCTION = "def run():\n" + "    print()\n" * house.MAX_FUNCTION_LINES
BREAKS: Mapping[str, tuple[str, str, str]] = {
    "file": ("tests/a.py", "pass\n" * 401, "tests/a.py:401: 401 lines, more than 400"),
    "syntax": ("tests/a.py", "a = 1\n>>>\n", "tests/a.py:2: the file is not Python: "),
    "function": ("tools/a.py", LONG_FUNCTION, "tools/a.py:1: run has 51 lines, more than 50"),
    "ignored finding": (
        "proctor/a.py",
        f"a = 1\nb = 1  # {MARK}\n",
        "proctor/a.py:2: the finding is ignored",
    ),
    "name of a contract": (
        "tests/a.py",
        "from proctor.v1 import run_service_pb2\n",
        "tests/a.py:1: import run_service_pb2 as run_pb2",
    ),
    "task": ("services/a.py", "create_task(work())\n", "services/a.py:1: the task has no name"),
    "id in a log": ("services/a.py", 'log.info("closed", run=1)\n', "services/a.py:1: log the id of the run"),
    "event of a log": (
        "services/a.py",
        'log.info(f"closed {run}")\n',
        "services/a.py:1: the event of a log call is constant",
    ),
    "wiring": (
        "services/a/topics.py",
        "from services.a.run import Runs\nmade = Runs(1)\n",
        "services/a/topics.py:2: a wiring passes the arguments of Runs by keyword",
    ),
    "import of a value": (
        "proctor/values/a.py",
        "import os\n",
        "proctor/values/a.py:1: values do not import os",
    ),
    "value that waits": (
        "proctor/values/a.py",
        "async def read(): ...\n",
        "proctor/values/a.py:1: values await nothing",
    ),
    "value that is not frozen": (
        "proctor/values/a.py",
        "@dataclass\nclass A: ...\n",
        "proctor/values/a.py:1: a value is a `dataclass(frozen=True, slots=True)`",
    ),
    "file of a service": ("services/a/run.py", "", "services/a/run.py:1: the file belongs in a topic"),
    "path": ("docs/a.md", "# A\n\nSee `docs/b.md`.\n", "docs/a.md:3: there is no docs/b.md"),
    "path of a run": (
        "ARCHITECTURE.md",
        "`worker/run`",
        "ARCHITECTURE.md:1: there is no services/worker/run.py",
    ),
    "decision": ("docs/decisions/0001-a.md", "# A\n", "docs/decisions/0001-a.md:1: the heading begins with"),
}


def write(root: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def found_in(root: Path, files: Mapping[str, str]) -> list[str]:
    write(root, files)
    return [str(fault) for fault in house.faults(root)]


@pytest.mark.parametrize("rule", BREAKS)
def test_a_file_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, rule: str) -> None:
    file, text, expected = BREAKS[rule]
    tops = house.TOP_OF_A_SERVICE if rule == "file of a service" else ()
    [fault] = found_in(tmp_path, {**{f"services/a/{stem}.py": "" for stem in tops}, file: text})
    assert fault.startswith(expected)


def test_a_folder_has_fifteen_files_at_most(tmp_path: Path) -> None:
    [fault] = found_in(tmp_path, {f"proctor/a/{number}.py": "" for number in range(16)})
    assert fault == "proctor/a:1: 16 Python files, more than 15: make a folder"


def test_a_circle_of_imports_is_found_inside_functions_too(tmp_path: Path) -> None:
    files = {
        "services/a/b.py": "from services.a.c import d\n",
        "services/a/c.py": "def d():\n    from services.a import b\n",
    }
    [fault] = found_in(tmp_path, files)
    assert fault.startswith("services/a:1: imports go in a circle: ")


def test_a_port_that_others_take_stands_in_ports(tmp_path: Path) -> None:
    port, user = "class Port(Protocol): ...\n", "from services.a.b import Port\n"
    [fault] = found_in(tmp_path, {"services/a/b.py": port, "services/a/c.py": user})
    assert fault == "services/a/b.py:1: other modules take the port Port: move it to ports.py"


def test_a_private_class_is_taken_by_no_other_module(tmp_path: Path) -> None:
    user = "from services.a import b\n\nmade = b._Part()\n"
    [fault] = found_in(tmp_path, {"services/a/b.py": "class _Part: ...\n", "services/a/c.py": user})
    assert fault == "services/a/c.py:3: services.a.b._Part is private to its module"


PROJECT = """
[tool.house.tables.a]
runs = ["runs"]
batches = ["batches"]

[tool.importlinter]
contracts = [{type = "layers", containers = ["services.a"], layers = ["batches", "runs"]}]
"""
TABLES = "CREATE TABLE runs ();\nCREATE TABLE batches ();\n"


def test_a_query_names_no_table_of_a_topic_above(tmp_path: Path) -> None:
    query = "-- name: read_run: A run\nSELECT FROM runs\nJOIN\n    batches USING (run_id);\n"
    files = {"pyproject.toml": PROJECT, "services/a/migrations/0001.sql": TABLES}
    [fault] = found_in(tmp_path, {**files, "services/a/runs/queries.sql": query})
    expected = "batches is a table of batches, which is not below runs"
    assert fault == f"services/a/runs/queries.sql:4: {expected}"
    assert (
        found_in(tmp_path, {"services/a/runs/queries.sql": "", "services/a/batches/queries.sql": query}) == []
    )


def test_each_table_has_a_topic(tmp_path: Path) -> None:
    files = {"pyproject.toml": PROJECT, "services/a/migrations/0001.sql": f"{TABLES}CREATE VIEW shards ();"}
    [fault] = found_in(tmp_path, files)
    assert fault == "pyproject.toml:1: shards of a has no topic: see [tool.house.tables.a]"


def test_names_of_tables_are_found_wherever_a_statement_has_them() -> None:
    statement = """
        WITH gone AS (DELETE FROM runs USING batches WHERE true RETURNING 1)
        UPDATE datasets SET name = '' FROM leadership, files
        WHERE EXISTS (SELECT FROM run_tasks JOIN shards USING (run_id)) FOR UPDATE OF limits
    """
    expected = {"runs", "batches", "datasets", "leadership", "files", "run_tasks", "shards", "limits"}
    assert expected <= set(house.NAMED_TABLE.findall(statement))


def test_files_in_order_are_left_alone(tmp_path: Path) -> None:
    files = {
        "docs/a.md": "`services/a/b.py`, `services/a/{b,ports}.py`, `services/*/b.py`\n",
        "services/a/b.py": "import os  # noqa: F401  # a reason\nfrom services.a.ports import Port\n",
        "services/a/ports.py": "class Port(Protocol): ...\n",
        "services/a/c.py": 'create_task(work(), name="work")\nlog.info("closed", run_id=1)\n',
    }
    assert found_in(tmp_path, files) == []


def test_the_program_prints_a_line_per_fault_and_exits_with_one(tmp_path: Path) -> None:
    write(tmp_path, {"proctor/a.py": f"b = 1  # {MARK}\n"})
    (tmp_path / "tools").mkdir()
    program = shutil.copy(house.__file__, tmp_path / "tools")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert done.stdout.startswith("proctor/a.py:1: the finding is ignored")
