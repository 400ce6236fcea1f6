"""An agent installs packages by pip and uv from the operator's folder of wheels: a sandbox has no network."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.programs.file_installers import FileInstallers
from services.worker.rollouts.programs.file_packages import FilePackages
from services.worker.rollouts.programs.processes_python import SandboxPython, sandbox_python
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders
from services.worker.rollouts.rollout_result import RolloutResult
from services.worker.verification.pytest_runner import pytest_runner
from tests.fakes.thorough_cases import first_cases
from tests.harness.rollout_tasks import harbor_folder, opened_rollouts, read_task, write

USES = "python3 -c 'import packed_of_test; print(packed_of_test.value)' > made && packed >> made"
WAYS = {
    "pip": f"pip install -q packed-of-test && {USES}",
    "python -m pip": f"python3 -m pip install --user 'packed_of_test>=1' && {USES}",
    "uv pip": f"uv pip install --system packed_of_test==1.0 && {USES}",
    "uv add": f"uv init && uv add packed_of_test && {USES.replace('python3', 'uv run python3')}",
    "beside what is not there": f"pip install nosuch packed_of_test || pip install packed_of_test && {USES}",
    "a virtual environment": f"uv venv && . .venv/bin/activate && uv pip install packed_of_test && {USES}",
    "what is there": f"""pip install pytest && pytest --version && apt-get install -y curl || exit
        pip install packed_of_test && {USES}""",
}
TEST = '[ "$(head -1 made)" = 6 ] && python3 -m pytest -rA /tests/test_twice.py'
IMPORTS = {"tests/test_twice.py": "import packed_of_test\ndef test_own(): assert packed_of_test.value == 6\n"}


class NamedPython(SandboxPython):
    """Called `python` too, so that a task without packages is shown none."""

    is_named_python = True


@dataclass(frozen=True)
class Machine:
    rollouts: ExecuteRollout

    async def solved(self, folder: Path) -> RolloutResult:
        spec = RolloutSpec(read_task(folder), RolloutAgent(AgentKind.ORACLE))
        async with asyncio.timeout(120):
            return await self.rollouts.execute(RolloutExecution(spec, "session"))


@asynccontextmanager
async def machine_with(
    wheels: Path | None, python: Callable[[], SandboxPython] = sandbox_python
) -> AsyncIterator[Machine]:
    # Sandboxes are of users of their own, who see no folder of this test's user.
    with TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        unpacked = UnpackedFolders(Path(folder, "unpacked"))
        packages = FilePackages(wheels, unpacked, is_shown=True, python=python)
        installers = FileInstallers(wheels, unpacked, is_shown=True, runner=pytest_runner)
        async with opened_rollouts(find_packages=packages.find, find_installers=installers.find) as rollouts:
            yield Machine(rollouts)


def wheelhouse(folder: Path) -> Path:
    folder.mkdir(mode=0o755)
    info = "packed_of_test-1.0.dist-info"
    with ZipFile(folder / "packed_of_test-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("packed_of_test.py", "value = 6\ndef main(): print(value)\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: packed_of_test\nVersion: 1.0\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\npacked = packed_of_test:main\n")
    return folder


def task(folder: Path, solve: str, **files: str) -> Path:
    return write(harbor_folder(folder, test=TEST), {"solution/solve.sh": f"{solve}\n", **files})


@first_cases(2, "way", WAYS)
async def test_a_package_of_the_wheels_is_installed_for_the_agent_and_its_tests(
    tmp_path: Path, way: str
) -> None:
    async with machine_with(wheelhouse(tmp_path / "wheels")) as machine:
        result = await machine.solved(task(tmp_path / "a", WAYS[way], **IMPORTS))
    assert result.result.score == 1.0, (result.result.log, result.trajectory.steps)


async def test_tests_of_a_task_without_packages_have_those_of_its_agent(tmp_path: Path) -> None:
    python = NamedPython(*astuple(sandbox_python()))
    async with machine_with(wheelhouse(tmp_path / "wheels"), lambda: python) as machine:
        result = await machine.solved(task(tmp_path / "a", WAYS["pip"], **IMPORTS))
    assert result.result.score == 1.0, (result.result.log, result.trajectory.steps)


@first_cases(1, "command", ["pip install nosuch", "uv pip install nosuch", "uv add nosuch"])
async def test_what_is_not_there_is_said_in_one_sentence(tmp_path: Path, command: str) -> None:
    solve = f"{command} > said 2>&1; echo $? >> said; echo 6 > made"
    async with machine_with(None) as machine:
        result = await machine.solved(task(tmp_path / "a", solve))
    program = command.split(maxsplit=1)[0]
    sentence = (
        "nosuch cannot be installed: a sandbox has no network, and PROCTOR_WORKER_VERIFIER_WHEELS names"
    )
    said = [line[1:] for line in result.diff.splitlines() if line.startswith("+") and "+++" not in line]
    assert said[-2:] == [f"{program}: {sentence} no wheel of it", "1"]


async def test_files_that_an_agent_calls_a_package_reach_no_test(tmp_path: Path) -> None:
    site = "/opt/installed/site"
    solve = f"""mkdir -p {site}/packed_of_test-2.0.dist-info {site}/other-1.0.dist-info; echo 6 > made
        echo 'value = 6' > {site}/packed_of_test.py; echo 'raise SystemExit' > {site}/sitecustomize.py"""
    async with machine_with(wheelhouse(tmp_path / "wheels")) as machine:
        result = await machine.solved(task(tmp_path / "a", solve, **IMPORTS))
    assert result.result.score == 0.0
    assert "No module named 'packed_of_test'" in result.result.log
