"""Programs of agents in a folder of the operator's: a folder for each, with its wheels or its archives."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from packaging.utils import canonicalize_name

from proctor.values.agents.templates import TEMPLATES
from proctor.values.rollout import RolloutAgent
from services.worker.rollouts.errors import ProgramNotInstalled
from services.worker.rollouts.programs.agent_program import AgentProgram
from services.worker.rollouts.programs.unpack import BadProgram, newest_wheels, unpack_archive, unpack_wheel
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
# Changes with how programs are unpacked.
_FORM = "1"


@dataclass(frozen=True, slots=True)
class FilePrograms:
    """Programs are unpacked into `unpacked`, once for each content. `folder` is None where there are none.

    `is_shown`: sandboxes can show a folder of this machine.
    """

    folder: Path | None
    unpacked: Path
    is_shown: bool

    def find(self, agent: RolloutAgent) -> AgentProgram | None:
        """None where the program is the image's. Blocks. Raises ProgramNotInstalled."""
        if not agent.template:
            return None
        folder = self.folder / agent.template if self.folder else None
        asked = f"the order asks for version {agent.version}"
        if folder is None or not folder.is_dir():
            if agent.version:
                raise _not_installed(agent, f"{asked}, and no folder has it")
            return None
        try:
            program = self._program(folder, agent)
        except (BadProgram, OSError) as problem:
            raise _not_installed(agent, f"{folder} cannot be unpacked ({problem})") from problem
        if agent.version and program.version != agent.version:
            found = f"version {program.version}" if program.version else "no version that can be told"
            raise _not_installed(agent, f"{asked}, and {folder} has {found}")
        return program

    def _program(self, folder: Path, agent: RolloutAgent) -> AgentProgram:
        """Raises BadProgram and OSError."""
        wheels = sorted(folder.glob("*.whl"))
        archives = sorted(path for path in folder.iterdir() if path.name.endswith(_ARCHIVES))
        if not wheels and not archives:
            raise BadProgram(f"it has no wheels, and no archives ({', '.join(_ARCHIVES)})")
        unpack = partial(_unpack, wheels, archives)
        target = UnpackedFolders(self.unpacked).made(_digest([*wheels, *archives]), unpack)
        version = _version(TEMPLATES[agent.template].package, wheels, target)
        return AgentProgram(target, version, _size(target), self.is_shown)


def _unpack(wheels: Sequence[Path], archives: Sequence[Path], into: Path) -> None:
    for archive in archives:
        unpack_archive(archive, into)
    for wheel in newest_wheels(wheels):
        unpack_wheel(wheel, into)


def _not_installed(agent: RolloutAgent, problem: str) -> ProgramNotInstalled:
    return ProgramNotInstalled(program=agent.template, problem=problem)


def _digest(paths: Sequence[Path]) -> str:
    facts = [(path.name, status.st_size, status.st_mtime_ns) for path in paths for status in [path.stat()]]
    return hashlib.sha256(json.dumps([_FORM, facts]).encode()).hexdigest()[:32]


def _version(package: str, wheels: Sequence[Path], target: Path) -> str:
    """Of the wheel, or of the package of node, that has the program."""
    for wheel in newest_wheels(wheels):
        name, version, *_ = wheel.name.split("-")
        if canonicalize_name(name) == canonicalize_name(package):
            return version
    try:
        described = json.loads((target / "node_modules" / package / "package.json").read_bytes())
    except (OSError, ValueError):
        return ""
    return str(described.get("version", "")) if package and isinstance(described, dict) else ""


@lru_cache(maxsize=32)
def _size(folder: Path) -> int:
    """Its folder has a name of its own for each content."""
    return sum(path.lstat().st_size for path in folder.rglob("*"))
