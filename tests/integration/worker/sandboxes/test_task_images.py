"""The image of a task is that of both of its sandboxes: a named one, or one built from its Dockerfile."""

import asyncio
import gzip
import io
import tarfile
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.values.rollout import ImageBuild
from services.common.clock import SystemClock
from services.common.sandboxes.errors import ImageNotAllowed, ImageNotBuilt
from services.worker.rollouts.check_soundness import CheckSoundness, TaskCheck
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.sandboxes.docker.builder import LABEL, REPOSITORY, DockerBuilder
from services.worker.sandboxes.docker.engine import DockerEngine
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout
from tests.harness.rollout_tasks import harbor_folder, read_task, tb_meta_folder, write
from tests.integration.worker.sandboxes.podman import BASE_IMAGE, Podman, problem

pytestmark = pytest.mark.skipif(bool(problem()), reason=problem() or "podman runs")
IMAGE = "localhost/task:test"
DOCKERFILE = f"""ARG BASE={BASE_IMAGE}
FROM $BASE AS made
RUN mkdir /made && echo secret > /made/secret && echo made > /made/kept
FROM $BASE
RUN echo built > /usr/bin/of-the-image && mkdir -p /srv/data && echo data > /srv/data/rows
WORKDIR /home/user/project
COPY --from=made /made/kept kept
COPY doubling.py .
RUN [ "$(ls /sys/class/net)" = lo ] && ln -s kept link && [ "$(wc -l < /proc/net/route)" -le 1 ]
"""
TEST = """cat /usr/bin/of-the-image /srv/data/rows link > all
[ "$(cat all)" = "built
data
made" ] && [ ! -e secret ] && python3 -m pytest /tests/test_twice.py
"""


@pytest.fixture
async def rollouts(podman: Podman) -> AsyncIterator[ExecuteRollout]:
    engine, clock = DockerEngine(podman.socket, BASE_IMAGE), SystemClock()
    execute_pytest = ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex)
    yield ExecuteRollout(
        verifier=VerifyRollout(execute_pytest),
        agents=ExecuteAgent(clock),
        slots=asyncio.Semaphore(1),
        clock=clock,
        builder=DockerBuilder(podman.socket, (BASE_IMAGE,), has_network=False),
    )
    await engine.close()


async def checked(rollouts: ExecuteRollout, folder: Path) -> TaskCheck:
    async with asyncio.timeout(200):
        [check] = [each async for each in CheckSoundness(rollouts).check([read_task(folder)])]
    return check


def of_dockerfile(folder: Path, dockerfile: str = DOCKERFILE) -> Path:
    solve = "cat /srv/data/rows && echo 'def twice(n): return 2 * n' > doubling.py\n"
    files = {"environment/Dockerfile": dockerfile, "solution/solve.sh": solve}
    return write(harbor_folder(folder, test=f"cd /home/user/project\n{TEST}"), files)


async def test_the_image_of_a_dockerfile_is_built_once(
    rollouts: ExecuteRollout, podman: Podman, tmp_path: Path
) -> None:
    folder = of_dockerfile(tmp_path / "a")
    check = await checked(rollouts, folder)
    assert check.is_sound, [agent.problem or agent.log for agent in check.agents]
    assert not [note for note in check.notes if "image" in note or "RUN" in note]
    listed = ("images", "--filter", f"label={LABEL}", "--format", "{{.Repository}} {{.ID}}")
    built = podman.run(*listed)
    assert built.count(REPOSITORY) == 1
    await checked(rollouts, folder)
    assert podman.run(*listed) == built


@pytest.mark.thorough
async def test_a_named_image_keeps_the_files_of_the_working_folder(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    """Those of the image, which a writable folder would hide."""
    task = read_task(of_dockerfile(tmp_path / "a"))
    assert rollouts.builder
    image = await rollouts.builder.build(task.context, task.build)
    config = f'[environment]\ndocker_image = "{image}"\nworkdir = "/home/user/project"\n'
    write(tmp_path / "a", {"task.toml": config})
    check = await checked(replace(rollouts, builder=None), tmp_path / "a")
    assert check.is_sound, [agent.problem or agent.log for agent in check.agents]


async def test_a_folder_that_cannot_be_built_has_no_score(rollouts: ExecuteRollout, tmp_path: Path) -> None:
    dockerfile = f"FROM {BASE_IMAGE}\nWORKDIR /home/user/project\nCOPY . .\nRUN echo last words && exit 7\n"
    check = await checked(rollouts, of_dockerfile(tmp_path / "a", dockerfile))
    assert [agent.score for agent in check.agents] == [None, None]
    assert "The image of the task cannot be built" in check.agents[0].problem
    assert "7" in check.agents[0].problem


def context(files: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(written.getvalue())


async def test_what_the_operator_does_not_allow_is_not_built(podman: Podman) -> None:
    builder = DockerBuilder(podman.socket, (BASE_IMAGE,), has_network=False)
    packed = context({"Dockerfile": b"FROM x"})
    with pytest.raises(ImageNotAllowed, match=r"docker.io/x/y"):
        await builder.build(packed, ImageBuild((BASE_IMAGE, "docker.io/x/y")))
    with pytest.raises(ImageNotBuilt, match="PROCTOR_WORKER_SANDBOX_BUILDS=network"):
        await builder.build(packed, ImageBuild((BASE_IMAGE,), fetches=True))
    with pytest.raises(ImageNotBuilt, match="nowhere"):
        await DockerBuilder("/nowhere", (BASE_IMAGE,), has_network=True).build(
            packed, ImageBuild(("scratch",))
        )


@pytest.fixture(scope="module")
def image(podman: Podman) -> str:
    """Has a variable that the worker's own image has not."""
    container = podman.run("create", BASE_IMAGE, "true").strip()
    podman.run("commit", "--quiet", "--change", "ENV MARK=of-the-task", container, IMAGE)
    podman.run("rm", container)
    return IMAGE


async def checked_scores(rollouts: ExecuteRollout, folder: Path) -> list[float | None]:
    check = await checked(rollouts, folder)
    assert not [agent.problem for agent in check.agents if agent.problem]
    return [agent.score for agent in check.agents]


@pytest.mark.thorough
async def test_both_sandboxes_are_of_the_image(rollouts: ExecuteRollout, image: str, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", f'[environment]\ndocker_image = "{image}"')
    files = {
        "solution/solve.sh": 'echo "$MARK" > mark\n',
        "tests/test.sh": 'echo $(( $(grep -c "^$MARK$" mark) )) > /logs/verifier/reward.txt\n',
    }
    write(folder, files)
    assert await checked_scores(rollouts, folder) == [1.0, 0.0]


async def test_rubrics_are_judged_in_the_image(rollouts: ExecuteRollout, image: str, tmp_path: Path) -> None:
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
    assert await checked_scores(rollouts, folder) == [1.0, 0.0]
