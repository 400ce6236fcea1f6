"""Nothing that Python or pytest finds by itself among the agent's files judges them, or stands for a test."""

import io
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from zipfile import ZipFile

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, RolloutTask
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import PackedFile, pack, read_files
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.rollout_result import RolloutResult
from services.worker.verification.pytest_request import PytestRequest
from services.worker.verification.pytest_runner import RUNNER, pytest_runner
from tests.fakes.thorough_cases import each_value_once, every_third, first_cases
from tests.harness.rollout_tasks import SOLVE, WRONG, opened_rollouts, read_task, write

SCRIPT = """from doubling import twice
from helpers import same


def test_twice():
    same(twice(21), 42)


def test_nothing_was_executed():
    assert not __import__("os").path.exists("/tmp/was-executed")
"""
HELPERS = "def same(left, right):\n    assert left == right\n"
NOTHING = "def same(*_):\n    pass\n"
PASSES = (
    "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    report = yield\n    report.outcome, report.longrepr = 'passed', None\n    return report\n"
    "def pytest_runtest_logreport(report):\n    report.outcome, report.longrepr = 'passed', None\n"
)
LEFT = "import pathlib\npathlib.Path('/tmp/was-executed').touch()\n"
ENTRY_POINT = "[pytest11]\nevil = evil\n"


def python(code: str) -> str:
    return f"python3 - <<'END'\n{code}\nEND\n"


# What replaces a source by compiled code that is never compared with it.
CACHED = python(
    "import importlib.util, marshal, os, pathlib\n"
    "os.makedirs('tests/__pycache__', exist_ok=True)\n"
    f"code = compile({NOTHING!r}, 'helpers.py', 'exec')\n"
    "data = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, 'little') + bytes(8) + marshal.dumps(code)\n"
    "path = importlib.util.cache_from_source('tests/helpers.py')\n"
    "pathlib.Path(path).write_bytes(data)\n"
)
# Each file of the agent's would pass the tests, or leave a trace, where it were executed.
WAYS: Mapping[str, Mapping[str, str]] = {
    "a plugin of a dist-info": {
        "evil-1.dist-info/entry_points.txt": ENTRY_POINT,
        "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
        "evil.py": LEFT + PASSES,
    },
    "a plugin of an egg-info": {
        "evil.egg-info/entry_points.txt": ENTRY_POINT,
        "evil.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
        "evil.py": LEFT + PASSES,
    },
    "a plugin beside the tests": {
        "tests/evil-1.dist-info/entry_points.txt": ENTRY_POINT,
        "tests/evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
        "tests/evil.py": LEFT + PASSES,
    },
    "conftest.py": {"conftest.py": LEFT + PASSES, "tests/conftest.py": LEFT + PASSES},
    "a package conftest": {"conftest/__init__.py": LEFT + PASSES, "tests/conftest/__init__.py": LEFT},
    "sitecustomize": {"sitecustomize.py": LEFT, "usercustomize.py": LEFT},
    "a .pth file": {
        "x.pth": f"import os; {LEFT.splitlines()[0]}\n",
        "tests/x.pth": "import os; os._exit(0)\n",
    },
    "pytest.ini": {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "pytest.toml": {"pytest.toml": '[pytest]\naddopts = ["--collect-only"]\n'},
    "pyproject.toml": {
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p evil"\n',
        "evil.py": PASSES,
    },
    "tox.ini": {"tox.ini": "[pytest]\npython_functions = nothing\n"},
    "setup.cfg": {"setup.cfg": "[tool:pytest]\npython_files = nothing\n"},
    "pytest": {"pytest.py": LEFT, "tests/pytest.py": LEFT},
    "_pytest": {"_pytest/__init__.py": LEFT, "tests/_pytest/__init__.py": LEFT, "pluggy.py": LEFT},
    "the standard library": dict.fromkeys(
        ("json.py", "ast.py", "argparse.py", "tests/json.py", "tests/inspect.py", "encodings/x.py"), LEFT
    ),
    "optional parts of pytest": dict.fromkeys(("readline.py", "argcomplete.py", "xdist.py", "py.py"), LEFT),
    "a package of the tests": {"__init__.py": LEFT, "tests/__init__.py": LEFT},
    "a helper in the root": {"helpers.py": LEFT + NOTHING},
    "a helper in its place": {"tests/helpers.py": LEFT + NOTHING},
    "a package for a helper": {"tests/helpers/__init__.py": LEFT + NOTHING},
    "a package for a script": {"tests/test_twice/__init__.py": LEFT + "def test_twice(): pass\n"},
    "another script": {"test_twice.py": "def test_twice(): pass\n", "tests/test_more.py": LEFT},
}
PROGRAMS = {
    "compiled code": CACHED,
    "an extension": "printf x > tests/helpers.so\nsuffix=$(python3 -c 'import sysconfig; "
    'print(sysconfig.get_config_var("EXT_SUFFIX"))\')\nprintf x > tests/helpers$suffix\n',
    "variables": "export PYTEST_PLUGINS=evil PYTHONPATH=/app/repo PYTHONSTARTUP=/app/repo/evil.py\n"
    "export PYTEST_ADDOPTS=--collect-only; env > .env; env > .pytest_env; cp .env ~/.profile\n",
}


def folder_with(
    path: Path,
    files: Mapping[str, str],
    program: str = "",
    *,
    script: tuple[str, str] = ("tests/test_twice.py", SCRIPT),
    own: Mapping[str, str] = MappingProxyType({}),
) -> RolloutTask:
    """A task whose solution leaves these files and runs the program; `own` are files of its repository."""
    solve = "".join(
        f"mkdir -p $(dirname {name})\ncat > {name} <<'END'\n{text}END\n" for name, text in files.items()
    )
    rubrics = [{"id": "right", "criterion": "twice doubles", "weight": 1}]
    scripts = [{"path": script[0], "rubric_id": "right", "content": script[1]}]
    meta = {
        "task_id": "doubling",
        "metadata": {},
        "repo": {},
        "lm": {"instructions": "Mend twice()."},
        "evaluation": {"rubrics": rubrics, "test_scripts": scripts},
    }
    task = {
        "tb_meta.json": json.dumps(meta),
        "overlay_repo_files/doubling.py": WRONG,
        "overlay_repo_files/tests/helpers.py": HELPERS,
        **{f"overlay_repo_files/{name}": text for name, text in own.items()},
        "solution/solve.sh": solve + program,
    }
    return read_task(write(path / "a", task))


@pytest.fixture
async def rollouts() -> AsyncIterator[ExecuteRollout]:
    async with opened_rollouts() as made:
        yield made


async def judged(rollouts: ExecuteRollout, task: RolloutTask) -> RolloutResult:
    spec = RolloutSpec(task, RolloutAgent(AgentKind.ORACLE))
    return await rollouts.execute(RolloutExecution(spec, "session"))


@first_cases(2, "way", every_third(WAYS))
async def test_a_file_that_would_be_found_is_not_executed(
    rollouts: ExecuteRollout, tmp_path: Path, way: str
) -> None:
    """With a wrong answer the script fails; with the right one it passes, and nothing else was executed."""
    wrong = await judged(rollouts, folder_with(tmp_path / "wrong", WAYS[way]))
    assert "1 passed, 1 failed" in wrong.result.log
    right = await judged(rollouts, folder_with(tmp_path / "right", WAYS[way], SOLVE))
    assert (right.result.score, "2 passed, 0 failed" in right.result.log) == (1.0, True), right.result.log


@first_cases(1, "way", PROGRAMS)
async def test_a_program_changes_no_test(rollouts: ExecuteRollout, tmp_path: Path, way: str) -> None:
    wrong = await judged(rollouts, folder_with(tmp_path / "wrong", {}, PROGRAMS[way]))
    assert "1 passed, 1 failed" in wrong.result.log
    right = await judged(rollouts, folder_with(tmp_path / "right", {}, PROGRAMS[way] + SOLVE))
    assert right.result.score == 1.0, right.result.log


OWN = "import pytest\n\n\n@pytest.fixture\ndef {0}():\n    return {1}\n"
LEGITIMATE: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "a conftest.py in each folder": (
        "tests/test_it.py",
        "from doubling import twice\ndef test(one, two):\n    assert twice(one) == two\n",
        {"conftest.py": OWN.format("one", 1), "tests/conftest.py": OWN.format("two", 2)},
    ),
    "tests that are a package": (
        "tests/test_it.py",
        "from doubling import twice\nfrom .helpers import same\ndef test():\n    same(twice(1), 2)\n",
        {"tests/__init__.py": ""},
    ),
    "a helper by the path of its folder": (
        "tests/unit/test_it.py",
        "from doubling import twice\nfrom tests.helpers import same\ndef test():\n    same(twice(1), 2)\n",
        {},
    ),
    "a script in the root": (
        "test_it.py",
        "from doubling import twice\ndef test():\n    assert twice(1)\n",
        {},
    ),
    "a script in a package of the solution": (
        "pack/test_it.py",
        "from pack.inner import thrice\ndef test():\n    assert thrice(1) == 3\n",
        {},
    ),
    "a script with the name of the solution": (
        "tests/doubling.py",
        "import sys\nsys.path.insert(0, '.')\nfrom doubling import twice\ndef test():\n    assert twice(1)\n",
        {},
    ),
    "weights of a model": (
        "tests/test_it.py",
        "from pathlib import Path\ndef test():\n    assert Path('model.pth').read_text() == 'w'\n",
        {},
    ),
}
PACK = "mkdir -p pack\nprintf 'from .more import *\\n' > pack/__init__.py\nprintf w > model.pth\n"
PACK += "printf 'def thrice(n): return 3 * n\\n' > pack/inner.py; touch pack/more.py\n"


@pytest.mark.parametrize("name", every_third(LEGITIMATE))
async def test_scripts_find_the_solution_and_their_helpers(
    rollouts: ExecuteRollout, tmp_path: Path, name: str
) -> None:
    path, script, own = LEGITIMATE[name]
    task = folder_with(tmp_path, {}, PACK + SOLVE, script=(path, script), own=own)
    result = (await judged(rollouts, task)).result
    assert result.score == 1.0, result.log


THRICE = "def thrice(n):\n    return 3 * n\n"
BESIDE_A_FOLDER = """import subprocess, sys
from doubling import twice
from helpers import same


def test():
    same(twice(1), 2)
    same(subprocess.run([sys.executable, "main.py"], capture_output=True).stdout, b"42\\n")
"""
BESIDE_A_PACKAGE = """from main import thrice
from tests.helpers import same


def test():
    same(thrice(14), 42)
"""
# The solution imports a module of a helper's name: in a process of its own, or in that of the tests.
NAMESAKES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "beside a folder of tests": (BESIDE_A_FOLDER, {}),
    "beside a package of tests": (BESIDE_A_PACKAGE, {"tests/__init__.py": ""}),
}


@pytest.mark.parametrize(
    ("name", "module"), each_value_once(NAMESAKES, ("helpers.py", "helpers/__init__.py"))
)
async def test_a_module_of_the_solution_may_have_the_name_of_a_helper(
    rollouts: ExecuteRollout, tmp_path: Path, name: str, module: str
) -> None:
    script, own = NAMESAKES[name]
    files = {module: THRICE, "main.py": "from helpers import thrice\nprint(thrice(14))\n"}
    task = folder_with(tmp_path, files, SOLVE, script=("tests/test_it.py", script), own=own)
    result = (await judged(rollouts, task)).result
    assert result.score == 1.0, result.log


SHADOWS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "a nearer folder": ("helpers", {"tests/unit/helpers.py": NOTHING}),
    "a package in a nearer folder": ("helpers", {"tests/unit/helpers/__init__.py": NOTHING}),
    "the same folder in itself": ("tests.helpers", {"tests/tests/helpers.py": NOTHING}),
    "a folder made a package": ("inner", {"tests/unit/__init__.py": "", "tests/inner.py": NOTHING}),
    "a folder made a package, and the root": ("inner", {"tests/unit/__init__.py": "", "inner.py": NOTHING}),
}


@pytest.mark.parametrize("way", every_third(SHADOWS))
async def test_no_file_is_found_before_a_helper(rollouts: ExecuteRollout, tmp_path: Path, way: str) -> None:
    helper, files = SHADOWS[way]
    script = f"from doubling import twice\nfrom {helper} import same\ndef test():\n    same(twice(1), 2)\n"
    own = {"tests/unit/inner.py": HELPERS}
    for solve, score in (("true\n", 0.0), (SOLVE, 1.0)):
        task = folder_with(
            tmp_path / str(score), files, solve, script=("tests/unit/test_it.py", script), own=own
        )
        result = (await judged(rollouts, task)).result
        assert result.score == score, result.log


async def test_programs_of_the_tests_have_no_variable_of_the_runner(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    script = (
        "import os, subprocess\ndef test():\n"
        "    assert 'PYTEST_VERSION' in os.environ\n"
        "    assert 'AUTOLOAD' not in subprocess.check_output(['env'], text=True)\n"
    )
    result = (await judged(rollouts, folder_with(tmp_path, {}, script=("tests/test_it.py", script)))).result
    assert result.score == 1.0, result.log


def runner_with_plugin() -> bytes:
    """The runner of an image with a plugin of pytest that prints and warns while it is loaded."""
    files = {
        file.name: PackedFile(file.content, file.mode)
        for file in read_files(io.BytesIO(pytest_runner()), RUNNER, TarLimits())
    }
    packages = io.BytesIO(files["packages.zip"].content)
    with ZipFile(packages, "a") as added:
        added.writestr("noisy-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: noisy\nVersion: 1\n")
        added.writestr("noisy-1.dist-info/entry_points.txt", "[pytest11]\nnoisy = noisy\n")
        plugin = (
            "import os, pytest, sys, warnings\nwarnings.warn('this is deprecated')\nos.write(1, b'loaded')\n"
        )
        added.writestr("noisy.py", plugin + "@pytest.fixture\ndef noisy():\n    return 1\n")
    return pack({**files, "packages.zip": packages.getvalue()})


async def test_a_plugin_may_print_while_it_is_loaded(rollouts: ExecuteRollout) -> None:
    verifier = replace(rollouts.verifier.execute_pytest, runner=runner_with_plugin)
    tests = pack({"test_it.py": b"def test(noisy):\n    assert noisy == 1\n"})
    verification = await verifier.execute(PytestRequest(pack({}), tests, timeout_seconds=60.0))
    assert (verification.is_passed, verification.detail) == (True, "1 passed, 0 failed"), verification.output


async def test_numbers_that_tests_record_are_metrics_of_the_rollout(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    script = (
        "def test_speed(record_property):\n"
        "    record_property('speed', 12.5)\n    record_property('is_tidy', True)\n"
        "    record_property('words', 'many')\n    record_property('never', float('nan'))\n"
    )
    task = folder_with(tmp_path, {"doubling.py": WRONG}, script=("tests/test_speed.py", script))
    done = await judged(rollouts, task)
    assert (done.result.score, dict(done.result.rewards)) == (1.0, {"speed": 12.5, "is_tidy": 1.0})
    assert json.loads(done.record_json)["rewards"] == {"speed": 12.5, "is_tidy": 1.0}
