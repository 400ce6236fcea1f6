"""Tasks are executed in real sandboxes: the solution scores 1, no work 0, and cheats do not pass."""

import asyncio
import json
import shutil
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.v1 import rollout_pb2
from proctor.values.rollout import AgentKind, RolloutAgent, RolloutLimits, RolloutSpec, RolloutTask
from proctor.wire.values import ROLLOUT_TASK
from services.common.clock import SystemClock
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.worker.rollouts.check_soundness import CheckSoundness, TaskCheck
from services.worker.rollouts.errors import StepNotPrepared
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout
from tests.fakes.thorough_cases import first_cases
from tests.harness.rollout_tasks import (
    SOLVE,
    harbor_folder,
    read_task,
    steps_folder,
    tb_meta_folder,
    terminal_bench_folder,
    write,
)
from tests.reference.golden_reference import folder_of


@pytest.fixture
async def checker() -> AsyncIterator[CheckSoundness]:
    engine, clock = BubblewrapEngine(find_bubblewrap()), SystemClock()
    execute_pytest = ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex)
    yield CheckSoundness(
        ExecuteRollout(
            verifier=VerifyRollout(execute_pytest),
            agents=ExecuteAgent(clock),
            slots=asyncio.Semaphore(2),
            clock=clock,
        )
    )
    await engine.close()


async def checked(checker: CheckSoundness, task: RolloutTask) -> TaskCheck:
    async with asyncio.timeout(60):
        [check] = [check async for check in checker.check([task])]
    return check


@first_cases(2, "make", [tb_meta_folder, harbor_folder, terminal_bench_folder, steps_folder])
async def test_the_solution_scores_1_and_no_work_less(
    checker: CheckSoundness, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    check = await checked(checker, read_task(make(tmp_path / "a")))
    oracle, none = check.agents
    assert (oracle.agent, oracle.score, oracle.problem) == (AgentKind.ORACLE, 1.0, "")
    # A rubric that any module passes counts a quarter.
    assert none.score == (0.25 if make is tb_meta_folder else 0.0)
    assert check.is_sound
    credited = "the tests give 0.25 to no work at all, with which every score of it begins"
    assert check.warnings == ((credited,) if make is tb_meta_folder else ())


async def test_tests_that_no_work_keeps_from_starting_score_it_0(
    checker: CheckSoundness, tmp_path: Path
) -> None:
    """They start on the solution, and find no test without it."""
    folder = harbor_folder(tmp_path / "a", test="python3 -m pytest made/test_twice.py")
    solve = f"{SOLVE}mkdir made; printf 'def test(): pass\\n' > made/test_twice.py\n"
    check = await checked(checker, read_task(write(folder, {"solution/solve.sh": solve})))
    assert [each.score for each in check.agents] == [1.0, 0.0], check
    (folder / "solution/solve.sh").write_text("true\n")
    check = await checked(checker, read_task(folder))
    assert [each.score for each in check.agents] == [None, None]


async def test_a_task_that_no_work_solves_is_not_sound(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", test="true\n")
    check = await checked(checker, read_task(folder))
    assert [(each.score, each.is_as_expected) for each in check.agents] == [(1.0, True), (1.0, False)]
    assert (check.is_sound, check.warnings) == (False, ())


async def test_a_solution_that_the_agent_sees_is_a_warning(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    write(folder / "environment", {".solution/x.py": "", "notes/hint.sh": SOLVE})
    (folder / "environment" / "Dockerfile").write_text("FROM x\nWORKDIR /app\nCOPY . .\n")
    check = await checked(checker, read_task(folder))
    assert check.is_sound
    assert check.warnings == (
        "the agent sees .solution/x.py, which looks like a solution",
        "the agent sees notes/hint.sh, which is solve.sh of the solution",
    )


async def test_a_solution_that_works_elsewhere_has_no_score(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", test="place=/tmp; grep -q x $place/answer")
    write(folder, {"solution/solve.sh": "echo x > /tmp/answer\n"})
    oracle, none = (await checked(checker, read_task(folder))).agents
    assert (oracle.score, none.score) == (None, 0.0)
    assert "scores 0 (reward 0), and left /tmp/answer" in oracle.problem


async def test_a_verifier_without_a_result_is_no_score(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", test="exit 1; true")
    oracle, none = (await checked(checker, read_task(folder))).agents
    assert (oracle.score, none.score) == (None, None)
    assert "no reward" in oracle.problem


@first_cases(
    3,
    ("written", "score", "problem"),
    [
        ('echo \'{"reward": 0.5, "seconds": 99}\' > /logs/verifier/reward.json', 0.5, ""),
        ('echo \'{"reward": 0.5, "checks": {"a": true}}\' > /logs/verifier/reward.json', 0.5, ""),
        ("echo 0.25 > /logs/verifier/reward.txt; exit 3", 0.25, ""),
        ("echo nan > /logs/verifier/reward.txt; exit 0", None, "is not a number"),
        ("echo 7 > /logs/verifier/reward.txt; exit 0", None, "not from 0 to 1"),
        ("echo '{' > /logs/verifier/reward.json", None, "not JSON"),
        ("echo '{\"right\": 0.5}' > /logs/verifier/reward.json", 0.5, ""),
        ('echo \'{"a": 1, "b": 0.5}\' > /logs/verifier/reward.json', None, "holds a, b, and none of them"),
        (
            'echo \'{"reward": "good"}\' > /logs/verifier/reward.json',
            None,
            "reward holds 'good', which is not",
        ),
        ("sleep 60", None, "did not end within 2 s"),
    ],
)
async def test_a_reward_is_a_number_from_0_to_1(
    checker: CheckSoundness, tmp_path: Path, written: str, score: float | None, problem: str
) -> None:
    folder = harbor_folder(tmp_path / "a")
    (folder / "tests" / "test.sh").write_text(written)
    task = replace(read_task(folder), limits=RolloutLimits(verifier_seconds=2.0))
    oracle, _ = (await checked(checker, task)).agents
    assert (oracle.score, problem in oracle.problem) == (score, True)


CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef answer():\n    return 42\n"
SUMMARIES = {
    "echo 'short test summary info'; exit 0": None,
    "echo 'short test summary info'; echo 'PASSED a'; pytest -rA $TEST_DIR": 0.0,
}


@first_cases(1, "program", SUMMARIES)
async def test_a_summary_that_says_nothing_passes_nothing(
    checker: CheckSoundness, tmp_path: Path, program: str
) -> None:
    folder = terminal_bench_folder(tmp_path / "a")
    (folder / "run-tests.sh").write_text(program)
    _, none = (await checked(checker, read_task(folder))).agents
    assert none.score == SUMMARIES[program]


async def test_files_that_steer_pytest_do_not_pass_a_rubric(checker: CheckSoundness, tmp_path: Path) -> None:
    """The cheats work where the tests are copied into the agent's folder and pytest is run there."""
    hook = "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    hook += "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    cheat = f"cat > conftest.py <<'END'\n{hook}END\nmkdir -p tests; cp conftest.py tests/\n"
    cheat += "printf '[pytest]\\naddopts = --collect-only\\n' > pytest.ini\nchmod 500 tests\n"
    cheat += "echo 'def main(*_, **__): return 0' > pytest.py\n"
    folder = tb_meta_folder(tmp_path / "a")
    (folder / "solution" / "solve.sh").write_text(cheat)
    oracle, _ = (await checked(checker, read_task(folder))).agents
    assert (oracle.score, oracle.problem) == (0.25, "")


async def test_a_conftest_of_the_task_itself_counts(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = tb_meta_folder(tmp_path / "a")
    evaluation = "import pytest\n\n\ndef test(answer):\n    assert answer == 42\n"
    write(
        folder,
        {
            "overlay_repo_files/conftest.py": CONFTEST,
            "solution/solve.sh": f"{SOLVE}\nrm conftest.py\n",
        },
    )
    task = read_task(folder)
    meta = (folder / "tb_meta.json").read_text().replace("def test():\\n    import doubling\\n", "")
    assert task.rubrics
    assert meta
    write(folder, {"evaluation/tests/test_there.py": evaluation})
    (folder / "tb_meta.json").write_text(meta)
    oracle, _ = (await checked(checker, read_task(folder))).agents
    assert (oracle.score, oracle.problem) == (1.0, "")


def test_a_task_survives_the_way_to_a_worker(tmp_path: Path) -> None:
    task = read_task(tb_meta_folder(tmp_path / "a"))
    sent = ROLLOUT_TASK.to_proto(task).SerializeToString()
    assert ROLLOUT_TASK.from_proto(rollout_pb2.RolloutTask.FromString(sent)) == task


async def test_a_task_with_an_image_is_refused_where_sandboxes_are_processes(
    checker: CheckSoundness, tmp_path: Path
) -> None:
    folder = harbor_folder(tmp_path / "a", '[environment]\ndocker_image = "python:3.13"')
    check = await checked(checker, read_task(folder))
    assert not check.is_sound
    [problem] = {agent.problem for agent in check.agents}
    assert problem.startswith(
        "The image python:3.13 needs containers. Set PROCTOR_WORKER_SANDBOX_ENGINE=docker"
    )


TASKS = ("exercism-affine-cipher", "exercism-phone-number", "quixbugs-quicksort")


@first_cases(1, "name", TASKS)
async def test_a_published_exercise_is_sound_in_the_form_of_harbor(
    checker: CheckSoundness, tmp_path: Path, name: str
) -> None:
    source = folder_of("PROCTOR_DATA_DIR") / "agentic" / name
    for part, target in (("workspace", "environment"), ("tests", "tests"), ("solution", "solution/files")):
        shutil.copytree(source / part, tmp_path / "a" / target, copy_function=shutil.copyfile)
    for folder in (tmp_path / "a").rglob("*"):
        folder.chmod(0o755)
    command = json.loads((source / "task.json").read_text())["test_command"]
    test = f"cp -r /tests/. . && {command}; echo $((! $?)) > /logs/verifier/reward.txt\n"
    files = {
        "task.toml": "",
        "instruction.md": (source / "instruction.md").read_text(),
        "environment/Dockerfile": "FROM x\nWORKDIR /app\nCOPY . .\n",
        "tests/test.sh": test,
        "solution/solve.sh": "cp -r /solution/files/. .\n",
    }
    assert (await checked(checker, read_task(write(tmp_path / "a", files)))).is_sound


async def test_a_published_task_of_terminal_bench_is_sound(checker: CheckSoundness) -> None:
    folder = folder_of("PROCTOR_DATA_DIR") / "agentic" / "tb-format-polyglot-python-proverb"
    check = await checked(checker, read_task(folder))
    assert check.is_sound
    assert check.warnings == ("the agent sees .oracle/solution.enc, which looks like a solution",)


async def performed(checker: CheckSoundness, task: RolloutTask) -> dict[str, Any]:
    """The record of a rollout of the task's own solution."""
    rollout_spec = RolloutSpec(task, RolloutAgent(AgentKind.ORACLE))
    async with asyncio.timeout(60):
        done = await checker.rollouts.execute(RolloutExecution(rollout_spec, "session"))
    record: dict[str, Any] = json.loads(done.record_json)
    return record


async def test_steps_share_a_sandbox_and_each_is_judged_by_its_own_tests(
    checker: CheckSoundness, tmp_path: Path
) -> None:
    record = await performed(checker, read_task(steps_folder(tmp_path / "a")))
    assert [(step["name"], step["score"]) for step in record["steps"]] == [("first", 1.0), ("second", 1.0)]
    assert (record["score"], record["rewards"]) == (1.0, {"reward": 1.0})
    assert "+++ b/thrice.py" in record["diff"]
    assert len([step for step in record["trajectory"]["steps"] if step["source"] == "agent"]) == 2
    assert record["verifier_log"].startswith("=== first\n")


@first_cases(1, ("strategy", "score"), [("mean", 0.5), ("final", 1.0)])
async def test_the_score_of_steps_is_their_mean_or_that_of_the_last(
    checker: CheckSoundness, tmp_path: Path, strategy: str, score: float
) -> None:
    """The first solution does nothing; the second does the work of both."""
    folder = steps_folder(tmp_path / "a", f'multi_step_reward_strategy = "{strategy}"')
    write(folder, {"steps/first/solution/solve.sh": "true\n"})
    second = (folder / "steps/second/solution/solve.sh").read_text()
    write(folder, {"steps/second/solution/solve.sh": f"{SOLVE}\n{second}"})
    record = await performed(checker, read_task(folder))
    assert ([step["score"] for step in record["steps"]], record["score"]) == ([0.0, 1.0], score)


async def test_a_step_below_its_least_reward_ends_the_task(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = steps_folder(tmp_path / "a", first="min_reward = 0.5")
    write(folder, {"steps/first/solution/solve.sh": "true\n"})
    record = await performed(checker, read_task(folder))
    assert ([step["name"] for step in record["steps"]], record["score"]) == (["first"], 0.0)


async def test_a_setup_that_fails_gives_no_score(checker: CheckSoundness, tmp_path: Path) -> None:
    folder = write(steps_folder(tmp_path / "a"), {"steps/second/workdir/setup.sh": "echo broken; exit 3\n"})
    with pytest.raises(StepNotPrepared, match=r"second failed: broken"):
        await performed(checker, read_task(folder))


@first_cases(2, ("artifacts", "score"), [('["doubling.py"]', 1.0), ('["out"]', 0.0), ("[]", 0.0)])
async def test_a_separate_verifier_sees_only_artifacts_of_the_agent(
    checker: CheckSoundness, tmp_path: Path, artifacts: str, score: float
) -> None:
    config = f'artifacts = {artifacts}\n[verifier]\nenvironment_mode = "separate"\n'
    record = await performed(checker, read_task(harbor_folder(tmp_path / "a", config)))
    assert record["score"] == score
