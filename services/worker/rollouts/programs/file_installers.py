"""Installers for agents of process sandboxes: those of tests, and the operator's folder of wheels."""

import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import read_files
from services.worker.rollouts.programs.agent_installers import AgentInstallers
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders

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
        return self.unpacked.made(name, lambda into: [_link(path, into) for path in wheels])

    def _made(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            tar = self.runner()
            name = f"installers-{hashlib.sha256(tar).hexdigest()[:32]}"
            self._folder = self.unpacked.made(name, lambda into: _unpack(tar, into))
        return self._folder


def _link(wheel: Path, into: Path) -> None:
    """A copy where it lies on another disk, or its user's alone."""
    target = into / wheel.name
    if wheel.stat().st_mode & 0o004:
        try:
            os.link(wheel, target)
        except OSError:
            pass
        else:
            return
    shutil.copyfile(wheel, target)
    target.chmod(0o644)


def _unpack(tar: bytes, into: Path) -> None:
    """Modules as a folder: a zip file would be read by each Python that an agent starts."""
    for file in read_files(io.BytesIO(tar), "the installers", TarLimits()):
        if file.name == _ZIP:
            with zipfile.ZipFile(io.BytesIO(file.content)) as modules:
                modules.extractall(into / "lib")
            continue
        target = into / file.name
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
