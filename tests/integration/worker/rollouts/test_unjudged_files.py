"""Files of an agent that cannot be judged are its failure; tests that no files could start are none."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutLimits, RolloutSpec, RolloutTask
from services.common.sandboxes.errors import SandboxBlocked, VerifierFailed
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import Isolation, SandboxSpec
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.rollout_result import AgentEnd
from services.worker.verification.verifier_result import VerifierResult
from tests.fakes.thorough_cases import each_value_once, every_third, first_cases
from tests.harness.rollout_tasks import (
    SOLVE,
    harbor_folder,
    opened_rollouts,
    read_task,
    tb_meta_folder,
    terminal_bench_folder,
    write,
)

FORMS: dict[str, Callable[[Path], Path]] = {
    "rubrics": tb_meta_folder,
    "reward": harbor_folder,
    "summary": terminal_bench_folder,
}
DODGES = {
    "a closed folder": "chmod 000 .; chmod 000 /app",
    "no folder": "cd /; rm -rf /app/* || :",
    "tests as a file": "rm -rf tests; echo x > tests",
    "tests as a dangling link": "rm -rf tests; ln -s /nonexistent tests",
    "tests as a link to itself": "ln -s tests tests",
    "tests that are read only": "mkdir -p tests/test_twice.py; chmod 500 tests/test_twice.py tests",
    "a file for the working folder": "cd /; rm -rf /app/repo /app/*; echo x > /app/repo",
    "a link for the working folder": "cd /; rm -rf /app/repo /app/*; ln -s /etc /app/repo",
    "an endless loop": "echo 'while True: pass' >> doubling.py",
    "the end of the process": "echo 'import os; os._exit(4)' >> doubling.py",
    "a usage error of pytest": "echo 'import pytest; raise pytest.UsageError' >> doubling.py",
    "the end of pytest": "echo 'import pytest; pytest.exit(\"x\", 4)' >> doubling.py",
    "a name that is no text": "touch $'a\\nb' $'bad\\xff' ./-rf; ln -s . loop",
    "a flood": "echo 'while True: print(\"x\" * 65536)' >> doubling.py",
}


@pytest.fixture
async def rollouts() -> AsyncIterator[ExecuteRollout]:
    async with opened_rollouts() as made:
        yield made


# Their tests end by the limit of time only.
ENDLESS = ("an endless loop", "a flood", "a pipe")


def _seconds_of(way: str) -> float:
    return 5.0 if way in ENDLESS else 15.0


async def judged(
    rollouts: ExecuteRollout, task: RolloutTask, verifier_seconds: float = 15.0
) -> VerifierResult:
    short = replace(task, limits=RolloutLimits(verifier_seconds=verifier_seconds))
    spec = RolloutSpec(short, RolloutAgent(AgentKind.ORACLE))
    return (await rollouts.execute(RolloutExecution(spec, "session"))).result


@pytest.mark.parametrize(("way", "form"), each_value_once(DODGES, tuple(FORMS), step=3))
async def test_files_that_cannot_be_judged_score_0(
    rollouts: ExecuteRollout, tmp_path: Path, form: str, way: str
) -> None:
    folder = FORMS[form](tmp_path / "a")
    solution = "solution.sh" if form == "summary" else "solution/solve.sh"
    write(folder, {solution: f"{DODGES[way]}\n"})
    # A script that passes where the module is imported counts a quarter.
    assert (await judged(rollouts, read_task(folder), _seconds_of(way))).score <= 0.25


_LOGS = "/logs/verifier"
LOGS = {
    "are gone": f"shutil.rmtree('{_LOGS}')",
    "are a link": f"shutil.rmtree('{_LOGS}'); os.symlink('/tmp', '{_LOGS}')",
    "are too many": f"open('{_LOGS}/x', 'wb').write(bytes(17 << 20))",
}


@pytest.mark.parametrize("logs", every_third(LOGS))
async def test_files_whose_code_spoils_the_logs_of_the_tests_score_0(
    rollouts: ExecuteRollout, tmp_path: Path, logs: str
) -> None:
    spoils = f"import os, shutil; {LOGS[logs]}"
    folder = harbor_folder(tmp_path / "a")
    write(folder, {"solution/solve.sh": f"cat >> doubling.py <<'END'\n{spoils}\nEND\n"})
    result = await judged(rollouts, read_task(folder))
    assert (result.score, _LOGS in result.detail) == (0.0, True), result.detail


UNSTARTED = {
    "cargo: command not found": "cargo test",
    "No module named": "python3 -S -E -m pytest",
    "unrecognized arguments": "python3 -m pytest --nosuch=x /tests/test_twice.py",
    "file or directory not found": "python3 -m pytest /tests/nothing.py",
    "1 deselected in": "python3 -m pytest -k nothing /tests/test_twice.py",
    "pytest ended with exit code 4": "pytest --nosuch /tests >/dev/null 2>&1",
    "pytest ended with exit code 5": "python3 -m pytest -k nothing /tests >/dev/null 2>&1",
    "Could not resolve host": "echo 'curl: (6) Could not resolve host: astral.sh'; false",
}


UNREADABLE = {
    "no result of pytest": "pytest -p no:terminal $TEST_DIR/test_twice.py",
    "they could not start: .*nothing.py": "pytest $TEST_DIR/nothing.py",
    "they printed nothing": "pytest -qq $TEST_DIR/test_twice.py > /dev/null",
}


@pytest.mark.parametrize("line", every_third(UNREADABLE))
async def test_a_summary_that_cannot_be_read_gives_no_score(
    rollouts: ExecuteRollout, tmp_path: Path, line: str
) -> None:
    """Neither to a solution that passes nor to none."""
    folder = write(terminal_bench_folder(tmp_path / "a"), {"run-tests.sh": f"{UNREADABLE[line]}\n"})
    for solution in (SOLVE, "true\n"):
        write(folder, {"solution.sh": solution})
        with pytest.raises(VerifierFailed, match=line):
            await judged(rollouts, read_task(folder))


PIPED = {
    "without -rA": "pytest $TEST_DIR/test_twice.py",
    "-qq": "pytest -qq $TEST_DIR/test_twice.py",
    "no summary": "pytest --no-summary -v $TEST_DIR/test_twice.py",
    "addopts": "PYTEST_ADDOPTS='-q --tb=no' pytest -v $TEST_DIR/test_twice.py",
    "colours": "pytest --color=yes -rA $TEST_DIR/test_twice.py",
    "stamps": "pytest -rA $TEST_DIR/test_twice.py | sed 's/^/[12:00:01] /; s/$/\\r/'",
}


@pytest.mark.parametrize("way", every_third(PIPED))
async def test_a_summary_is_read_however_it_is_printed(
    rollouts: ExecuteRollout, tmp_path: Path, way: str
) -> None:
    folder = write(terminal_bench_folder(tmp_path / "a"), {"run-tests.sh": f"{PIPED[way]}\n"})
    assert (await judged(rollouts, read_task(folder))).score == 1.0
    write(folder, {"solution.sh": "true\n"})
    assert (await judged(rollouts, read_task(folder))).score == 0.0


async def test_a_reason_that_the_tests_wrote_to_a_file_is_found(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder = harbor_folder(tmp_path / "a", test="kotlinc x.kt > /logs/verifier/build.log 2>&1")
    with pytest.raises(VerifierFailed, match="kotlinc: command not found"):
        await judged(rollouts, read_task(folder))


@pytest.mark.parametrize("line", every_third(UNSTARTED))
async def test_tests_that_could_not_start_give_no_score(
    rollouts: ExecuteRollout, tmp_path: Path, line: str
) -> None:
    task = read_task(harbor_folder(tmp_path / "a", test=UNSTARTED[line]))
    with pytest.raises(VerifierFailed, match=line):
        await judged(rollouts, task)


async def test_a_missing_plugin_gives_no_score(rollouts: ExecuteRollout, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    write(folder, {"tests/test_twice.py": "def test(benchmark):\n    pass\n"})
    with pytest.raises(VerifierFailed, match="fixture 'benchmark' not found"):
        await judged(rollouts, read_task(folder))


@pytest.mark.thorough
async def test_a_line_that_the_agent_prints_is_no_reason(rollouts: ExecuteRollout, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    write(folder, {"solution/solve.sh": "echo 'print(\"uvx: command not found\"); exit(1)' > doubling.py\n"})
    assert (await judged(rollouts, read_task(folder))).score == 0.0


async def test_what_tests_do_not_find_and_do_not_need_is_no_reason(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    test = "cargo --version; sudo apt-get update; python3 -m pytest /tests/test_twice.py"
    folder = harbor_folder(tmp_path / "a", test=test)
    assert (await judged(rollouts, read_task(folder))).score == 1.0
    write(folder, {"solution/solve.sh": "true\n"})
    assert (await judged(rollouts, read_task(folder))).score == 0.0


# The regular files are those that the task began with.
UNCHANGED = {
    "a pipe": ("mkfifo out", "cat out"),
    "a dangling link": ("ln -s /nonexistent out", "[ ! -L out ] || exit 1"),
    "a mode": ("chmod 700 doubling.py; chmod +t .", "[ ! -k . ] || exit 1"),
    "an empty folder": ("mkdir out", "[ ! -d out ] || exit 1"),
}


@pytest.mark.parametrize("way", every_third(UNCHANGED))
async def test_what_is_no_regular_file_scores_0_too(
    rollouts: ExecuteRollout, tmp_path: Path, way: str
) -> None:
    program, test = UNCHANGED[way]
    folder = harbor_folder(tmp_path / "a", test=f"{test} 2>/dev/null; python3 -m pytest /tests/test_twice.py")
    write(folder, {"solution/solve.sh": f"{program}\n"})
    assert (await judged(rollouts, read_task(folder), _seconds_of(way))).score == 0.0


async def test_a_program_that_the_agent_was_to_make_scores_0(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder = harbor_folder(tmp_path / "a", test="mytool --version")
    with pytest.raises(VerifierFailed, match="mytool: command not found"):
        await judged(rollouts, read_task(folder))
    write(folder, {"instruction.md": "Write a program mytool.\n"})
    assert (await judged(rollouts, read_task(folder))).score == 0.0


class BlockedEngine:
    """Its first sandbox is blocked once the agent begins."""

    def __init__(self, engine: SandboxEngine) -> None:
        self._engine = engine
        self._opened = 0

    async def check(self) -> Isolation:
        return await self._engine.check()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        sandbox = await self._engine.open(spec)
        self._opened += 1
        if self._opened == 1:
            sandbox.run = sandbox.get = sandbox.stop_processes = _blocked  # type: ignore[assignment, method-assign]  # a fault
        return sandbox

    async def sweep(self) -> int:
        return await self._engine.sweep()

    async def close(self) -> None:
        await self._engine.close()


async def _blocked(*_: object, **__: object) -> None:
    raise SandboxBlocked(problem="its processes took more memory than it may have, and all were ended.")


@first_cases(1, "form", FORMS)
async def test_an_agent_that_blocks_its_sandbox_scores_0(
    rollouts: ExecuteRollout, tmp_path: Path, form: str
) -> None:
    pytest_in = rollouts.verifier.execute_pytest
    blocked = replace(pytest_in, engine=BlockedEngine(pytest_in.engine))
    rollouts = replace(rollouts, verifier=replace(rollouts.verifier, execute_pytest=blocked))
    task = read_task(FORMS[form](tmp_path / "a"))
    spec = RolloutSpec(task, RolloutAgent(AgentKind.ORACLE))
    executed = await rollouts.execute(RolloutExecution(spec, "session"))
    assert (executed.result.score, executed.end) == (0.0, AgentEnd.BLOCKED)
    assert "more memory" in executed.result.detail
