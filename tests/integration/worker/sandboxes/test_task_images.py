"""The image of a task is that of the agent's sandbox and of the one that judges."""

import asyncio
import uuid
from pathlib import Path

import pytest

from services.common.clock import SystemClock
from services.worker.rollouts.check_soundness import CheckSoundness
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.sandboxes.docker.engine import DockerEngine
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout
from tests.harness.rollout_tasks import harbor_folder, read_task, tb_meta_folder, write
from tests.integration.worker.sandboxes.podman import BASE_IMAGE, Podman, problem

IMAGE = "localhost/task:test"
pytestmark = pytest.mark.skipif(bool(problem()), reason=problem() or "podman runs")


@pytest.fixture(scope="module")
def image(podman: Podman) -> str:
    """Has a variable that the worker's own image has not."""
    container = podman.run("create", BASE_IMAGE, "true").strip()
    podman.run("commit", "--quiet", "--change", "ENV MARK=of-the-task", container, IMAGE)
    podman.run("rm", container)
    return IMAGE


async def checked_scores(podman: Podman, folder: Path) -> list[float | None]:
    engine, clock = DockerEngine(podman.socket, BASE_IMAGE), SystemClock()
    execute_pytest = ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex)
    rollouts = ExecuteRollout(
        verifier=VerifyRollout(execute_pytest),
        agents=ExecuteAgent(clock),
        slots=asyncio.Semaphore(1),
        clock=clock,
    )
    try:
        async with asyncio.timeout(100):
            [check] = [each async for each in CheckSoundness(rollouts).check([read_task(folder)])]
    finally:
        await engine.close()
    assert not [agent.problem for agent in check.agents if agent.problem]
    return [agent.score for agent in check.agents]


async def test_both_sandboxes_are_of_the_image(podman: Podman, image: str, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", f'[environment]\ndocker_image = "{image}"')
    files = {
        "solution/solve.sh": 'echo "$MARK" > mark\n',
        "tests/test.sh": 'echo $(( $(grep -c "^$MARK$" mark) )) > /logs/verifier/reward.txt\n',
    }
    write(folder, files)
    assert await checked_scores(podman, folder) == [1.0, 0.0]


async def test_rubrics_are_judged_in_the_image(podman: Podman, image: str, tmp_path: Path) -> None:
    folder = tb_meta_folder(tmp_path / "a")
    script = "import os\n\n\ndef test():\n    assert open('mark').read() == os.environ['MARK']\n"
    evaluation = {
        "rubrics": [{"id": "mark", "criterion": "", "weight": 1}],
        "test_scripts": [{"path": "test_mark.py", "rubric_id": "mark", "content": script}],
    }
    tb_meta_folder(tmp_path / "a", evaluation=evaluation)
    write(
        folder,
        {"overrides.json": f'{{"image": "{image}"}}', "solution/solve.sh": 'printf "$MARK" > mark\n'},
    )
    assert await checked_scores(podman, folder) == [1.0, 0.0]
