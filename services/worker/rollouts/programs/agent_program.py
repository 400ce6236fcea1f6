"""A program of an agent as the worker brings it into a sandbox."""

import io
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PLACE = "/opt/agent"
# Where its commands are: scripts of wheels and of archives, and those of a bundle of node.
_BINARIES = (f"{PLACE}/bin", f"{PLACE}/node_modules/.bin")


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """`folder` has the program unpacked, with `size_bytes`. `version` is empty where it is not known.

    `is_shown`: sandboxes show the folder itself. Others get its files, in memory.
    """

    folder: Path
    version: str
    size_bytes: int
    is_shown: bool

    def packed(self) -> bytes:
        """A tar of its files. Blocks."""
        return _packed(self.folder)


def path_with_program(path: str) -> str:
    return ":".join([*_BINARIES, path])


@lru_cache(maxsize=1)
def _packed(folder: Path) -> bytes:
    """Its folder has a name of its own for each content."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return written.getvalue()
