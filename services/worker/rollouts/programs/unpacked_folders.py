"""A folder of the worker's in which each content is unpacked once, for all sandboxes."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

_unpacking = Lock()


@dataclass(frozen=True, slots=True)
class UnpackedFolders:
    root: Path

    def made(self, name: str, unpack: Callable[[Path], object]) -> Path:
        """The folder `name`, which `unpack` fills where it is not there. Blocks.

        Raises OSError where others could change it, and what `unpack` raises.
        """
        with _unpacking:
            self._make_root()
            target = self.root / name
            if not target.is_dir():
                self._unpack(target, unpack)
        return target

    def _unpack(self, target: Path, unpack: Callable[[Path], object]) -> None:
        """Renamed when it is whole: a worker may be killed, and another may unpack the same."""
        part = Path(tempfile.mkdtemp(dir=self.root))
        try:
            unpack(part)
            part.chmod(0o755)
            part.rename(target)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)
            if not target.is_dir():
                raise
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise

    def _make_root(self) -> None:
        """Sandboxes, of users of their own, read it."""
        self.root.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = self.root.lstat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022 or not self.root.is_dir():
            raise PermissionError(f"{self.root} is not a folder that only this account may change")
