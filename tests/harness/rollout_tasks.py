"""Small tasks in the three forms of folders, and repositories of them: a function `twice` is to be mended."""

import asyncio
import json
import os
import secrets
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.values.rollout import RolloutTask
from services.common.clock import SystemClock
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.sandbox import TarLimits
from services.scheduler.rollouts.tasks.file_task_sets import read_path
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.rollouts.model_port.execute_program import ExecuteProgram
from services.worker.rollouts.model_port.http import served_model
from services.worker.rollouts.programs.agent_installers import AgentInstallers
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.image_packages import ImagePackages
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout

WRONG = "def twice(n):\n    return 3 * n\n"
RIGHT = "def twice(n):\n    return 2 * n\n"
TESTS = "from doubling import twice\n\n\ndef test_twice():\n    assert twice(21) == 42\n"
SOLVE = "cat > doubling.py <<'END'\n" + RIGHT + "END\n"
_REWARD = "\nif [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def tb_meta(**changes: object) -> dict[str, object]:
    """A test that needs the solution, weight 3, and one that anything passes, weight 1."""
    scripts = [
        {"path": "tests/test_twice.py", "rubric_id": "right", "content": TESTS},
        {
            "path": "tests/test_there.py",
            "rubric_id": "there",
            "content": "def test():\n    import doubling\n",
        },
    ]
    rubrics = [
        {"id": "right", "criterion": "twice doubles", "weight": 3},
        {"id": "there", "criterion": "the module is there", "weight": 1},
    ]
    return {
        "task_id": "doubling",
        "metadata": {"title": "Doubling", "tags": ["python"]},
        "repo": {"git_url": "", "branch": "main"},
        "lm": {"instructions": "Mend twice() in doubling.py."},
        "evaluation": {"rubrics": rubrics, "test_scripts": scripts},
        **changes,
    }


def tb_meta_folder(folder: Path, **changes: object) -> Path:
    files = {
        "tb_meta.json": json.dumps(tb_meta(**changes)),
        "overlay_repo_files/doubling.py": WRONG,
        "solution/solve.sh": SOLVE,
    }
    return write(folder, files)


def harbor_folder(
    folder: Path, config: str = "", test: str = "python3 -m pytest /tests/test_twice.py"
) -> Path:
    files = {
        "task.toml": config or 'schema_version = "1.0"\n[metadata]\ndifficulty = "easy"\n',
        "instruction.md": "Mend twice() in doubling.py.\n",
        "environment/Dockerfile": "FROM python:3.13\nWORKDIR /app\nCOPY doubling.py .\n",
        "environment/doubling.py": WRONG,
        "tests/test.sh": f"#!/bin/bash\ncd /app\n{test}{_REWARD}",
        "tests/test_twice.py": TESTS,
        "solution/solve.sh": SOLVE,
    }
    return write(folder, files)


def steps_folder(folder: Path, config: str = "", **steps: str) -> Path:
    """Two steps: one mends `doubling.py`, the next writes `thrice.py` of what its setup left."""
    first = steps.get("first", "")
    second = steps.get("second", "")
    toml = f"""schema_version = "1.4"
{config}
[[steps]]
name = "first"
{first}

[[steps]]
name = "second"
{second}
"""
    reward = "#!/bin/bash\ncd /app\npython3 -m pytest /tests/test_step.py" + _REWARD
    files = {
        "task.toml": toml,
        "environment/Dockerfile": "FROM python:3.13\nWORKDIR /app\nCOPY doubling.py .\n",
        "environment/doubling.py": WRONG,
        "tests/test.sh": reward,
        "steps/first/instruction.md": "Mend twice() in doubling.py.\n",
        "steps/first/tests/test_step.py": TESTS,
        "steps/first/solution/solve.sh": SOLVE,
        "steps/second/instruction.md": "Write thrice() to thrice.py, in the form of form.txt.\n",
        "steps/second/workdir/setup.sh": "cp /app/given.txt /app/form.txt\n",
        "steps/second/workdir/given.txt": "return 3 * n",
        "steps/second/tests/test_step.py": (
            "from doubling import twice\nfrom thrice import thrice\n\n\n"
            "def test_both():\n    assert (twice(2), thrice(2)) == (4, 6)\n"
        ),
        "steps/second/solution/solve.sh": (
            "(echo 'def thrice(n):'; echo \"    $(cat form.txt)\") > thrice.py\n"
        ),
    }
    return write(folder, files)


def terminal_bench_folder(folder: Path, config: str = "") -> Path:
    files = {
        "task.yaml": config or "instruction: Mend twice() in doubling.py.\nparser_name: pytest\n",
        "Dockerfile": "FROM python:3.13\nWORKDIR /app\nCOPY doubling.py ./\nENV A=1 B='2 3'\n",
        "doubling.py": WRONG,
        "run-tests.sh": "pip install pytest\npytest -rA $TEST_DIR/test_twice.py\n",
        "tests/test_twice.py": TESTS,
        "solution.sh": SOLVE,
    }
    return write(folder, files)


def read_task(folder: Path) -> RolloutTask:
    """A folder of one task, read as the scheduler reads it."""
    [task] = read_path(folder).sound()
    return task


_AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str, given: str = "") -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)}
    command = ("git", "-C", str(folder), *_AUTHOR, *arguments)
    ended = subprocess.run(
        command, env=environment, input=given, capture_output=True, text=True, timeout=30, check=True
    )
    return ended.stdout.strip()


def committed(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


@asynccontextmanager
async def opened_rollouts(
    collected: TarLimits | None = None,
    find_packages: Callable[[Sequence[str]], ImagePackages] = lambda _: ImagePackages(),
    find_installers: Callable[[], AgentInstallers] = AgentInstallers,
) -> AsyncIterator[ExecuteRollout]:
    """Rollouts in real sandboxes of processes."""
    engine, clock = BubblewrapEngine(find_bubblewrap()), SystemClock()
    programs = ExecuteProgram(served_model, lambda: secrets.token_urlsafe(32), clock)
    execute_pytest = ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex)
    try:
        yield ExecuteRollout(
            verifier=VerifyRollout(execute_pytest, find_packages=find_packages),
            agents=ExecuteAgent(clock, programs),
            slots=asyncio.Semaphore(2),
            clock=clock,
            collected=collected or TarLimits(),
            find_installers=find_installers,
        )
    finally:
        await engine.close()
