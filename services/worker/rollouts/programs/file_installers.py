"""Installers for agents of process sandboxes: those of tests, and the operator's folder of wheels."""

import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.rollouts.programs.agent_installers import INTO, AgentInstallers
from services.worker.rollouts.programs.processes_python import NoPython, sandbox_python, write_user_site
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders
from services.worker.verification.image_packages import PLACE as PACKAGES

_ZIP = "packages.zip"


@dataclass(slots=True)
class FileInstallers:
    """`wheels` is read again for each rollout. `is_shown`: sandboxes can show folders of this machine.

    `runner` gives a tar of the installers of tests.
    """

    wheels: Path | None
    unpacked: UnpackedFolders
    is_shown: bool
    runner: Callable[[], bytes]
    _folder: Path | None = field(default=None, init=False)

    def find(self) -> AgentInstallers:
        """Blocks. None where folders are not shown: images have installers of their own."""
        if not self.is_shown:
            return AgentInstallers()
        folder = self._made()
        if self.wheels is None or not self.wheels.is_dir():
            return AgentInstallers(str(folder))
        wheels = sorted(self.wheels.glob("*.whl"))
        there = ("-".join(path.name.split("-")[:2]) for path in wheels)
        return AgentInstallers(str(folder), str(self._linked(wheels)), frozenset(there))

    def _linked(self, wheels: Sequence[Path]) -> Path:
        """A folder of links: the users of sandboxes need not see that of the operator."""
        facts = "\n".join(f"{path} {(status := path.stat()).st_size} {status.st_mtime_ns}" for path in wheels)
        name = f"wheels-{hashlib.sha256(facts.encode()).hexdigest()[:32]}"
        return self.unpacked.made(name, partial(_link, wheels))

    def _made(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            tar, user_site = self.runner(), _user_site()
            name = f"installers-{hashlib.sha256(tar + user_site.encode()).hexdigest()[:32]}"
            self._folder = self.unpacked.made(name, partial(_unpack, tar, user_site))
        return self._folder


def _link(wheels: Sequence[Path], into: Path) -> None:
    """A copy where one lies on another disk, or is its user's alone."""
    for wheel in wheels:
        target = into / wheel.name
        if wheel.stat().st_mode & 0o004:
            with suppress(OSError):
                os.link(wheel, target)
                continue
        shutil.copyfile(wheel, target)
        target.chmod(0o644)


def _user_site() -> str:
    """The folder of a user's packages below its base; empty where there is no Python."""
    try:
        return sandbox_python().user_site
    except NoPython:
        return ""


def _unpack(tar: bytes, user_site: str, into: Path) -> None:
    """Modules as a folder: a zip file would be read by each Python that an agent starts."""
    if user_site:
        write_user_site(into / "user" / user_site, (f"{INTO}/site", f"{PACKAGES}/lib"))
    for file in read_files(io.BytesIO(tar), "the installers", TarLimits()):
        if file.name == _ZIP:
            with zipfile.ZipFile(io.BytesIO(file.content)) as modules:
                modules.extractall(into / "lib")
            continue
        target = into / file.name
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
