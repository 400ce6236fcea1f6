"""The Python that sandboxes of processes have: the machine's own, which need not be the worker's."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import packaging

from services.common.sandboxes.sandbox import DEFAULT_PATH

_ASK = """import importlib.metadata, json, sys
installed = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
sys.path.insert(0, sys.argv[1])
from packaging.markers import default_environment
from packaging.tags import sys_tags
print(json.dumps([list(map(str, sys_tags())), default_environment(), installed]))
"""
_SECONDS = 60
_COMPILE_SECONDS = 600


class NoPython(Exception):
    """Why it cannot be asked."""


@dataclass(frozen=True, slots=True)
class SandboxPython:
    """`tags` of wheels, `markers` of requirements, and versions of what is `installed`, by its names."""

    program: str
    tags: frozenset[str]
    markers: Mapping[str, str]
    installed: Mapping[str, str]

    @property
    def user_site(self) -> str:
        """The folder of a user's packages, below PYTHONUSERBASE."""
        return f"lib/python{self.markers['python_version']}/site-packages"

    @property
    def is_named_python(self) -> bool:
        """Whether it is called `python` too, as in images of Python."""
        return shutil.which("python", path=DEFAULT_PATH) is not None

    def compile(self, folder: Path, shown: str) -> None:
        """Compiles modules, which no sandbox could keep. What does not compile fails where it is used."""
        options = ("-q", "--invalidation-mode", "unchecked-hash", "-d", shown)
        _run([self.program, "-I", "-m", "compileall", *options, str(folder)], _COMPILE_SECONDS)


@cache
def sandbox_python() -> SandboxPython:
    """Asked once. Blocks. Raises NoPython."""
    program = shutil.which("python3", path=DEFAULT_PATH)
    if program is None:
        raise NoPython("there is no python3 below /usr")
    own = Path(packaging.__file__).parent.parent
    ended = _run([program, "-I", "-c", _ASK, str(own)], _SECONDS)
    if ended.returncode:
        raise NoPython(f"{program} fails: {ended.stderr.strip()[-200:]}")
    answer: Any = json.loads(ended.stdout)
    tags, markers, installed = answer
    return SandboxPython(program, frozenset(tags), markers, installed)


def write_user_site(folder: Path, modules: Sequence[str]) -> None:
    """Folders of modules that Python finds whatever PYTHONPATH is, where they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "proctor.pth").write_text("".join(f"{place}\n" for place in modules))


def _run(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Raises NoPython where it does not end."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoPython(f"{command[0]} does not end within {seconds:g} s") from error
