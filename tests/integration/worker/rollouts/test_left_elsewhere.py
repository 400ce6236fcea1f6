"""What agents leave outside of their working folder reaches the tests as in a container, or is said."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec, VerificationPlace
from services.common.sandboxes.errors import SandboxError
from services.common.sandboxes.sandbox import TarLimits
from services.worker.rollouts.errors import (
    FilesNotCollected,
    FilesNotReached,
    FolderNotGiven,
    FolderNotWritable,
    SolutionLacksNetwork,
    SolutionLacksProgram,
    SolutionMayLack,
    SolutionNotPrepared,
)
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.rollout_result import RolloutResult
from tests.fakes.thorough_cases import every_third, first_cases
from tests.harness.rollout_tasks import harbor_folder, opened_rollouts, read_task, tb_meta_folder, write

JOIN = "cat a.txt b.txt > c.txt\n"


@pytest.fixture
async def rollouts() -> AsyncIterator[ExecuteRollout]:
    async with opened_rollouts() as made:
        yield made


async def executed(
    rollouts: ExecuteRollout,
    folder: Path,
    kind: AgentKind = AgentKind.ORACLE,
    place: VerificationPlace = VerificationPlace.FRESH,
) -> RolloutResult:
    spec = RolloutSpec(read_task(folder), RolloutAgent(kind, verification=place))
    return await rollouts.execute(RolloutExecution(spec, "session"))


def made(folder: Path, dockerfile: str, solution: str, test: str) -> Path:
    files = {"environment/Dockerfile": dockerfile, "environment/a.txt": "a\n", "solution/solve.sh": solution}
    return write(
        harbor_folder(folder, test=test), {**files, "tests/test.sh": f"#!/bin/bash\n{test}{_REWARD}"}
    )


_REWARD = "\nif [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
_JOINED = "\"$(printf 'a\\nb')\""
# Without WORKDIR: a Dockerfile, a solution, and tests that work in the root.
IN_ROOT: Mapping[str, tuple[str, str, str]] = {
    "a file that is named": ("FROM ubuntu:24.04\n", "echo hi > out.txt\n", "grep -q hi /out.txt"),
    "a relative file": ("FROM ubuntu:24.04\n", "echo hi > out.txt\n", "grep -q hi out.txt"),
    "tests that change to the root": ("FROM x\n", "cd /; echo hi > out.txt\n", "cd /; grep -q hi out.txt"),
    "a new folder": ("FROM x\nCOPY a.txt /in/\n", "mkdir /out; cp in/a.txt /out\n", "grep -q a out/a.txt"),
    "files of COPY and RUN": (
        "FROM x\nCOPY a.txt .\nRUN echo b > /b.txt\n",
        JOIN,
        f'[ "$(cat /c.txt)" = {_JOINED} ]',
    ),
    "WORKDIR of the root": (
        "FROM x/y\nWORKDIR /app\nWORKDIR /\n",
        "echo hi > out.txt\n",
        "grep -q hi /out.txt",
    ),
}


@pytest.mark.parametrize("way", every_third(IN_ROOT))
async def test_tests_that_work_in_the_root_see_what_the_solution_left(
    rollouts: ExecuteRollout, tmp_path: Path, way: str
) -> None:
    folder = made(tmp_path / "a", *IN_ROOT[way])
    solved = await executed(rollouts, folder)
    assert (solved.result.score, solved.result.suspicions) == (1.0, ()), solved.result.log
    assert (await executed(rollouts, folder, AgentKind.NONE)).result.score == 0.0


FOLDERS = ("/opt", "/srv", "/var", "/data", "/var/lib/app", "/opt/x", "/root", "/home", "/tmp", "/mnt")


@first_cases(3, "workdir", FOLDERS)
async def test_folders_of_the_root_are_working_folders(
    rollouts: ExecuteRollout, tmp_path: Path, workdir: str
) -> None:
    dockerfile = f"FROM ubuntu\nWORKDIR {workdir}\nCOPY a.txt .\nRUN echo b > b.txt\n"
    folder = made(tmp_path / "a", dockerfile, JOIN, f'[ "$(cat {workdir}/c.txt)" = {_JOINED} ]')
    solved = await executed(rollouts, folder)
    assert (solved.result.score, "c.txt" in solved.diff) == (1.0, True), solved.result.log
    assert (await executed(rollouts, folder, AgentKind.NONE)).result.score == 0.0


ELSEWHERE = (
    *("/tmp/answer", "/opt/made/deep/answer", "/srv/answer", "/var/lib/x/answer"),
    *("/home/user/answer", "/run/answer", "/answer"),
)


@first_cases(3, "path", ELSEWHERE)
async def test_files_elsewhere_reach_the_tests(rollouts: ExecuteRollout, tmp_path: Path, path: str) -> None:
    solution = f"mkdir -p {Path(path).parent} && echo hi > {path} && echo x > /tmp/scratch\n"
    folder = made(
        tmp_path / "a", "FROM x\nWORKDIR /app\n", solution, f"grep -q hi {path} && [ ! -e /tmp/scratch ]"
    )
    solved = await executed(rollouts, folder)
    # The tests name the scratch file, so it is there.
    assert solved.result.score == 0.0
    write(folder, {"tests/test.sh": f"#!/bin/bash\ngrep -q hi {path}{_REWARD}"})
    assert (await executed(rollouts, folder)).result.score == 1.0


NOT_REACHED: Mapping[str, tuple[str, str, type[SandboxError], str]] = {
    "of a computed name": (
        "echo hi > /tmp/answer\n",
        "d=/tmp; grep hi $d/answer",
        FilesNotReached,
        "/tmp/answer",
    ),
    "settings of a home": (
        "mkdir ~/.config; echo hi > ~/.config/answer\n",
        "grep hi ~/.config/answer",
        FilesNotReached,
        "left /home/.config/answer",
    ),
    "of the machine, by a shell": (
        "echo hi > /etc/answer\n",
        "grep hi /etc/answer",
        FolderNotWritable,
        "/etc/answer",
    ),
    "of the machine, by Python": (
        "python3 -c \"open('/usr/answer', 'w')\"\n",
        "grep hi /usr/answer",
        FolderNotWritable,
        "/usr/answer",
    ),
}


@pytest.mark.parametrize("way", every_third(NOT_REACHED))
async def test_what_cannot_reach_the_tests_is_said(
    rollouts: ExecuteRollout, tmp_path: Path, way: str
) -> None:
    solution, test, error, says = NOT_REACHED[way]
    folder = made(tmp_path / "a", "FROM x\nWORKDIR /app\n", solution, test)
    with pytest.raises(error, match=f"scores 0 .*{says}"):
        await executed(rollouts, folder)
    assert (await executed(rollouts, folder, AgentKind.NONE)).result.score == 0.0


_IMAGE = "FROM golang:1.26\nRUN apt-get update && apt-get install -y frobnicate frob=1\nWORKDIR /app\n"
LACKING: Mapping[str, tuple[str, str, str, type[SandboxError], str]] = {
    "a program that RUN installs": (
        _IMAGE,
        "frobnicate x > y\n",
        "[ -s y ]",
        SolutionLacksProgram,
        "lacks frobnicate: .* not executed: RUN apt-get install -y frobnicate frob=1",
    ),
    "a program of its image": (
        "FROM frob/image:1\nWORKDIR /app\n",
        "frobnicate x > y\n",
        "[ -s y ]",
        SolutionLacksProgram,
        r"lacks frobnicate: its image is not used here \(frob/image:1\)",
    ),
    "a program of another name than its package": (
        _IMAGE,
        "frobbing x > y\n",
        "[ -s y ]",
        SolutionLacksProgram,
        r"lacks frobbing: its image is not used here \(golang:1.26\), nor is RUN apt-get install -y frob",
    ),
    "a program by its path": (
        "FROM x\nRUN wget https://example.org/frob.sh && sh frob.sh\nWORKDIR /app\n",
        "/opt/frob/bin/frobnicate x > y\n",
        "[ -s y ]",
        SolutionLacksProgram,
        r"lacks /opt/frob/bin/frobnicate: its image is not used here \(x\), nor is RUN wget",
    ),
    "what nothing names": (
        _IMAGE,
        "true\n",
        "[ -s y ]",
        SolutionMayLack,
        "its Dockerfile has what is not executed: RUN apt-get install -y frobnicate",
    ),
    "a program that its tests execute": (
        _IMAGE,
        "echo x > y\n",
        'python3 -c \'import subprocess; subprocess.run(["frobnicate", "y"])\'',
        SolutionLacksProgram,
        "lacks frobnicate: of its Dockerfile this is not executed",
    ),
    "a package that RUN installs": (
        "FROM x\nRUN pip install frob.ni-cate\nWORKDIR /app\n",
        "python3 -c 'import frob_ni_cate' && echo x > y\n",
        "[ -s y ]",
        SolutionLacksProgram,
        "lacks frob_ni_cate: PROCTOR_WORKER_VERIFIER_WHEELS",
    ),
    "a file in a folder of the machine": (
        "FROM ubuntu\nWORKDIR /app\nCOPY a.txt /usr/share/a/a.txt\n",
        "cp /usr/share/a/a.txt y\n",
        "[ -s y ]",
        SolutionNotPrepared,
        "has not all that its image has: it lacks /usr/share/a/a.txt",
    ),
    "a file in a folder that its tests have": (
        "FROM ubuntu\nWORKDIR /app\nCOPY a.txt /tests/in/\n",
        "cp /tests/in/a.txt y\n",
        "[ -s y ]",
        SolutionNotPrepared,
        "has not all that its image has: it lacks /tests/in/a.txt",
    ),
    "a file that RUN makes": (
        "FROM ubuntu\nWORKDIR /app\nRUN mkdir /usr/share/a; echo 1 > /usr/share/a/b\n",
        "cp /usr/share/a/b y\n",
        "[ -s y ]",
        SolutionMayLack,
        "its Dockerfile has what is not executed: RUN mkdir /usr/share/a",
    ),
    "a step that fails": (
        "FROM ubuntu\nWORKDIR /app\nRUN tar -xf absent.tar\n",
        "cp x y\n",
        "[ -s y ]",
        SolutionNotPrepared,
        "of RUN this failed: tar -xf absent.tar",
    ),
    "a network": (
        "FROM x\nWORKDIR /app\n",
        "python3 -c \"import socket; socket.create_connection(('example.org', 80))\" && echo x > y\n",
        "[ -s y ]",
        SolutionLacksNetwork,
        "needs a network, which no sandbox has: .*name resolution",
    ),
}


@pytest.mark.parametrize("way", every_third(LACKING))
async def test_what_a_solution_lacks_is_no_score(rollouts: ExecuteRollout, tmp_path: Path, way: str) -> None:
    dockerfile, solution, test, error, says = LACKING[way]
    folder = made(tmp_path / "a", dockerfile, solution, test)
    with pytest.raises(error, match=f"scores 0 .*{says}"):
        await executed(rollouts, folder)
    assert (await executed(rollouts, folder, AgentKind.NONE)).result.score == 0.0


IN_OWN = {"/logs/in": "/logs/in", "/solution/in": "/solution/in", "/etc/in": "/etc/in", "/tests/in": "/app"}


@pytest.mark.parametrize("folder", every_third(IN_OWN))
@pytest.mark.parametrize("place", VerificationPlace)
async def test_files_of_the_image_in_folders_of_agents_and_tests_are_there(
    rollouts: ExecuteRollout, tmp_path: Path, folder: str, place: VerificationPlace
) -> None:
    made_in = IN_OWN[folder]
    dockerfile = f"FROM ubuntu\nWORKDIR /app\nCOPY a.txt {folder}/\nCOPY a.txt {made_in}/b.txt\n"
    test = f"cat {folder}/a.txt /app/y | grep -c a | grep -qx 2"
    made_folder = made(tmp_path / "a", dockerfile, f"cp {made_in}/b.txt /app/y\n", test)
    solved = await executed(rollouts, made_folder, place=place)
    assert solved.result.score == 1.0, solved.result.log
    assert (await executed(rollouts, made_folder, AgentKind.NONE, place)).result.score == 0.0


async def test_a_module_that_the_solution_left_is_not_lacking(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder = made(
        tmp_path / "a",
        "FROM x\nWORKDIR /app\n",
        "echo 'x = 1' > doubling.py\n",
        "cd /; python3 -c 'import doubling'",
    )
    result = (await executed(rollouts, folder)).result
    assert (result.score, "No module named 'doubling'" in result.log) == (0.0, True)


async def test_rubrics_that_need_files_elsewhere_say_so(rollouts: ExecuteRollout, tmp_path: Path) -> None:
    folder = write(tb_meta_folder(tmp_path / "a"), {"solution/solve.sh": "mv doubling.py /srv/doubling.py\n"})
    with pytest.raises(FilesNotReached, match=r"left /srv/doubling\.py"):
        await executed(rollouts, folder)


async def test_the_same_sandbox_is_refused_where_it_cannot_have_the_working_folder(
    rollouts: ExecuteRollout, tmp_path: Path
) -> None:
    folder = made(tmp_path / "a", "FROM x\nWORKDIR /opt\n", "touch a\n", "[ -e a ]")
    with pytest.raises(FolderNotGiven, match="works in /opt"):
        await executed(rollouts, folder, place=VerificationPlace.SAME)


async def test_files_elsewhere_over_a_limit_matter_where_the_tests_fail(tmp_path: Path) -> None:
    many = "cd /srv && seq 3000 | xargs touch\n"
    async with opened_rollouts(TarLimits(members=2000)) as rollouts:
        folder = made(tmp_path / "a", "FROM x\nWORKDIR /app\n", f"{many}echo hi > /app/x\n", "grep hi /app/x")
        assert (await executed(rollouts, folder)).result.score == 1.0
        folder = made(tmp_path / "b", "FROM x\nWORKDIR /app\n", many, "[ -e /srv/2999 ]")
        with pytest.raises(FilesNotCollected, match=r"more than 2,000\."):
            await executed(rollouts, folder)


STEERING = {
    "conftest.py": "import os\nos._exit(0)\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'\n",
}


@first_cases(1, "name", STEERING)
async def test_files_above_the_tests_do_not_steer_them(
    rollouts: ExecuteRollout, tmp_path: Path, name: str
) -> None:
    planted = f"cat > /pytest.ini <<'END'\n[pytest]\nEND\ncat > /{name} <<'END'\n{STEERING[name]}END\n"
    folder = write(harbor_folder(tmp_path / "a"), {"solution/solve.sh": planted})
    result = (await executed(rollouts, folder)).result
    assert (result.score, bool(result.suspicions)) == (0.0, True), result.log
