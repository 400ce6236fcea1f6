"""Packages that a Dockerfile installs by pip are there for its steps, for the agent and for the tests."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent, RolloutSpec
from services.common.sandboxes.errors import VerifierFailed
from services.worker.rollouts.execute_rollout import RolloutExecution
from services.worker.rollouts.programs.file_packages import FilePackages
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders
from services.worker.rollouts.rollout_result import RolloutResult
from tests.harness.rollout_tasks import harbor_folder, opened_rollouts, read_task, write

DOCKERFILE = """FROM python:3.13
WORKDIR /app
COPY . .
RUN apt-get update && pip install --no-cache-dir packed_of_test==1.0
RUN python -c 'import packed_of_test; print(packed_of_test.value)' > made
"""
TEST = """set -e
[ "$(cat made)" = 6 ] || exit 1
packed | grep -q 6
cat > /tests/test_own.py <<'END'
import packed_of_test
from pathlib import Path
def test_own(): assert Path("/app/solved").read_text() == f"{packed_of_test.value}\\n"
END
pytest -rA /tests/test_own.py
"""


async def executed(folder: Path, wheels: Path) -> RolloutResult:
    spec = RolloutSpec(read_task(folder), RolloutAgent(AgentKind.ORACLE))
    # Sandboxes are of users of their own, who see no folder of this test's user.
    with TemporaryDirectory(dir="/var/tmp") as open_folder:
        Path(open_folder).chmod(0o755)
        packages = FilePackages(wheels, UnpackedFolders(Path(open_folder, "unpacked")), is_shown=True)
        async with asyncio.timeout(120), opened_rollouts(find_packages=packages.find) as rollouts:
            return await rollouts.execute(RolloutExecution(spec, "session"))


def task_folder(folder: Path) -> Path:
    solve = "python -c 'import packed_of_test; print(packed_of_test.value)' > solved\n"
    files = {"environment/Dockerfile": DOCKERFILE, "solution/solve.sh": solve}
    return write(harbor_folder(folder, test=TEST), files)


async def test_packages_are_those_of_the_wheels(tmp_path: Path) -> None:
    info = "packed_of_test-1.0.dist-info"
    with ZipFile(tmp_path / "packed_of_test-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("packed_of_test.py", "value = 6\ndef main(): print(value)\n")
        wheel.writestr(f"{info}/METADATA", "Name: packed_of_test\nVersion: 1.0\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\npacked = packed_of_test:main\n")
    result = await executed(task_folder(tmp_path / "a"), tmp_path)
    assert result.result.score == 1.0, result.result.log
    assert any("not executed: apt-get update" in note for note in result.notes)
    assert not any("packages" in note or "failed" in note for note in result.notes)


async def test_without_them_there_is_no_score_even_if_the_task_names_them(tmp_path: Path) -> None:
    folder = task_folder(tmp_path / "a")
    files = {
        "instruction.md": "Use packed_of_test.",
        "tests/test_twice.py": "import packed_of_test\ndef test_own(): pass\n",
        "tests/test.sh": "pytest -rA /tests/test_twice.py || echo 0 > /logs/verifier/reward.txt\n",
    }
    with pytest.raises(VerifierFailed, match="No module named 'packed_of_test'"):
        await executed(write(folder, files), tmp_path)
