"""Tests that first fetch and install what they need: what is there is installed, without a network."""

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from services.common.sandboxes.errors import VerifierFailed
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import pack, read_files
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.verification.bundles import LeftFiles, inflated
from services.worker.verification.file_wheels import FileWheels
from services.worker.verification.verifier_result import VerifierResult
from tests.fakes.thorough_cases import every_third, first_cases
from tests.harness.rollout_tasks import RIGHT, harbor_folder, opened_rollouts, read_task, write

TEST = "/tests/test_twice.py"
UV = "https://astral.sh/uv/0.9.7/install.sh"
CTRF = "--ctrf /logs/verifier/ctrf.json"
INSTALLERS = {
    "uvx": f"""apt-get -qq update && apt-get install -y --no-install-recommends -t stable curl ca-certificates
        curl -LsSf {UV} | sh
        source "$HOME/.local/bin/env"
        uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest {CTRF} -rA {TEST}""",
    "uv venv": f"""set -e
        wget -qO- https://astral.sh/uv/install.sh | sh
        . $HOME/.cargo/env
        . ~root/.cargo/env
        uv venv --python 3.12 .t
        source .t/bin/activate
        uv pip install pytest==8.4.1 'pytest-json-ctrf>=0.3,<9'
        uv run pytest {TEST} -rA""",
    "packages with other names than their programs": f"""set -e
        apt-get update && apt-get install -y grep coreutils findutils diffutils && pytest {TEST}""",
    "uv run": f"""curl -fsSLo /tmp/i {UV} && sh /tmp/i
        $HOME/.local/bin/uv -q run --no-project --with 'pytest>=8' --python=3 -- python -m pytest {TEST}""",
    "uv with a project": f"uv init && uv add pytest && uv run -m pytest {TEST}",
    "uv tool run": f"uv tool run --from pytest==8.4.1 pytest {TEST}",
    "a version of a command": f"uvx --python 3.12 pytest@8.4.1 {TEST}",
    "pipx": f"pipx install pytest && pipx inject pytest pytest-json-ctrf && pipx run pytest {TEST}",
    "a command with a pin": f"pipx run pytest==8.4.1 {TEST} && uvx 'pytest>=8' {TEST}",
    "pip": f"""curl -sS https://bootstrap.pypa.io/get-pip.py | python3
        pip3 install -q --break-system-packages -U pip setuptools 'pytest==8.4.1' && pytest {TEST}""",
    "python -m pip": f"python3 -m pip install --no-cache-dir -i https://example.org pytest && pytest {TEST}",
    "a file of requirements": f"""printf 'pytest==8.4.1  # runs them\\n-i https://example.org\\n' > /tmp/r.txt
        pip install -r /tmp/r.txt && python3 -m pytest {CTRF} {TEST}""",
    "a path of modules": f"PYTHONPATH=/app pytest {TEST}",
}
REFUSED = {
    "pip: nosuch==1 cannot be installed: .*PROCTOR_WORKER_VERIFIER_WHEELS": "pip install nosuch==1",
    "uvx: nosuch cannot be installed": f"uvx --with nosuch pytest {TEST}",
    "uv: nosuch cannot be installed": f"uv run --with nosuch pytest {TEST}",
    "uv: sync needs uv itself": "uv sync",
    "Unable to locate package nosuch": f"set -e; apt-get install -y curl nosuch; pytest {TEST}",
    "Could not resolve host": "set -o pipefail; curl -sSf https://example.org/install.sh | sh",
}


@pytest.fixture
async def rollouts() -> AsyncIterator[ExecuteRollout]:
    async with opened_rollouts() as made:
        yield made


async def judged(rollouts: ExecuteRollout, folder: Path) -> VerifierResult:
    """The workspace, which is right from the start."""
    task = read_task(folder)
    async with asyncio.timeout(60):
        return await rollouts.verifier.verify(task, LeftFiles(inflated(task.workspace)))


def right_folder(folder: Path, test: str) -> Path:
    return write(harbor_folder(folder, test=test), {"environment/doubling.py": RIGHT})


@pytest.mark.parametrize("way", every_third(INSTALLERS))
async def test_what_is_there_is_installed(rollouts: ExecuteRollout, tmp_path: Path, way: str) -> None:
    result = await judged(rollouts, right_folder(tmp_path / "a", INSTALLERS[way]))
    assert result.score == 1.0, result.log
    assert "1 passed" in result.log


VARIABLES = {
    "PATH": f"uvx pytest {TEST} && helper | grep helped",
    "PYTHONPATH": f"python3 -m pytest {TEST} && python3 -c 'import inner'",
}


@pytest.mark.parametrize("name", VARIABLES)
async def test_variables_of_a_task_leave_the_runner_of_tests(
    rollouts: ExecuteRollout, tmp_path: Path, name: str
) -> None:
    folder = right_folder(tmp_path / "a", f"chmod +x lib/helper; {VARIABLES[name]}")
    dockerfile = (
        "FROM debian\nWORKDIR /app\nCOPY . .\nENV PATH=/app/lib:/usr/bin:/bin\nENV PYTHONPATH=/app/lib\n"
    )
    files = {"Dockerfile": dockerfile, "lib/inner.py": "", "lib/helper": "#!/bin/sh\necho helped\n"}
    write(folder / "environment", files)
    result = await judged(rollouts, folder)
    assert result.score == 1.0, result.log


async def test_scripts_with_the_lines_of_another_system_run(rollouts: ExecuteRollout, tmp_path: Path) -> None:
    folder = right_folder(tmp_path / "a", f"if true; then pytest {TEST}; fi")
    test = folder / "tests" / "test.sh"
    test.write_bytes(test.read_bytes().replace(b"\n", b"\r\n"))
    assert (await judged(rollouts, folder)).score == 1.0


@pytest.mark.parametrize("line", every_third(REFUSED))
async def test_what_is_not_there_gives_no_score(rollouts: ExecuteRollout, tmp_path: Path, line: str) -> None:
    with pytest.raises(VerifierFailed, match=line):
        await judged(rollouts, right_folder(tmp_path / "a", REFUSED[line]))


def wheel(folder: Path, name: str, *, requires: str = "", version: str = "1.5") -> None:
    """A module of that name with a program, as a wheel."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as files:
        files.writestr(f"{name}.py", "def main():\n    print('this is', __name__)\n")
        files.writestr(f"{info}/METADATA", metadata + (f"Requires-Dist: {requires}\n" if requires else ""))
        files.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:main\n")


@first_cases(
    2,
    "install",
    ["pip install 'first~=1.0'", "uv pip install --system first", "uvx first", "uvx --from first second"],
)
async def test_wheels_of_the_worker_are_installed_with_what_they_require(
    rollouts: ExecuteRollout, tmp_path: Path, install: str
) -> None:
    wheel(tmp_path / "wheels", "first", requires="second>=1; python_version > '3'")
    wheel(tmp_path / "wheels", "second")
    wheel(tmp_path / "wheels", "third")
    verifier = replace(rollouts.verifier, wheels=FileWheels(tmp_path / "wheels").packed)
    test = (
        f"{install}; python3 -c 'import first, second' && first && [ $(ls /opt/runner/wheels | wc -l) = 2 ]"
    )
    folder = right_folder(tmp_path / "a", test)
    result = await judged(replace(rollouts, verifier=verifier), folder)
    assert result.score == 1.0, result.log
    assert "this is first" in result.log


@pytest.mark.parametrize(("version", "place"), [("1.5", "/opt/runner"), ("2.5", "/tmp/there")])
async def test_what_a_wheel_requires_is_newer_than_what_is_there(
    rollouts: ExecuteRollout, tmp_path: Path, version: str, place: str
) -> None:
    """A wheel may need more than it says. Another major version is none that others there expect."""
    wheel(tmp_path / "wheels", "first", requires="second>=1")
    wheel(tmp_path / "wheels", "second", version=version)
    verifier = replace(rollouts.verifier, wheels=FileWheels(tmp_path / "wheels").packed)
    there = "mkdir -p /tmp/there/second-1.4.dist-info; touch /tmp/there/second.py\n"
    there += "printf 'Name: second\\nVersion: 1.4\\n' > /tmp/there/second-1.4.dist-info/METADATA\n"
    there += "export PYTHONPATH=$PYTHONPATH:/tmp/there\n"
    test = (
        f"{there}pip install second first; python3 -c 'import second; print(second.__file__)' | grep {place}"
    )
    result = await judged(replace(rollouts, verifier=verifier), right_folder(tmp_path / "a", test))
    assert result.score == 1.0, result.log


@first_cases(1, "pin", ["first==1.4.9", "first~=1.6.0", "first==1.9,<2"])
async def test_a_wheel_of_the_pinned_major_version_is_used_and_said(
    rollouts: ExecuteRollout, tmp_path: Path, pin: str
) -> None:
    for version in ("0.9", "1.4", "1.5", "2.0"):
        wheel(tmp_path / "wheels", "first", version=version)
    verifier = replace(rollouts.verifier, wheels=FileWheels(tmp_path / "wheels").packed)
    folder = right_folder(tmp_path / "a", f"pip install '{pin}' && first")
    result = await judged(replace(rollouts, verifier=verifier), folder)
    assert result.score == 1.0, result.log
    assert "first 1.5 is used: there is no wheel of first" in result.log


async def test_a_version_that_no_wheel_has_is_refused(rollouts: ExecuteRollout, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "first")
    verifier = replace(rollouts.verifier, wheels=FileWheels(tmp_path / "wheels").packed)
    folder = right_folder(tmp_path / "a", "pip install first==2.0 && first")
    with pytest.raises(VerifierFailed, match=r"pip: first==2\.0 cannot be installed"):
        await judged(replace(rollouts, verifier=verifier), folder)


def test_a_sandbox_takes_one_version_of_each_wheel(tmp_path: Path) -> None:
    """That which the tests want, and which these require; else the newest."""
    for version in ("1.9", "1.10", "2.0"):
        wheel(tmp_path, "first", requires="second<3", version=version)
        wheel(tmp_path, "third", version=version)
        wheel(tmp_path, "second", version=f"{version}.1")
    wheel(tmp_path, "second", version="3.0")
    tests = gzip.compress(pack({"test.sh": b"pip install 'first>=1.9,<2' && uvx third"}))
    packed = FileWheels(tmp_path).packed(tests)
    names = [file.name.partition("-py3")[0] for file in read_files(io.BytesIO(packed), "", TarLimits())]
    assert names == ["first-1.10", "second-2.0.1", "third-2.0"]
