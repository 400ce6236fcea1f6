"""Files of tasks on disk, those used last, within a number of bytes. They are checked when they are read."""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from services.common.structured_logs import get_logger

log = get_logger()


class FileBundleCache:
    """The folder may be shared with other workers and emptied at any time. 0 bytes: nothing is kept."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def get(self, digest: str) -> bytes | None:
        file = self._folder / digest
        try:
            # What another account put there need not be a file: a pipe would never end.
            self._check_own()
            content = file.read_bytes()
            os.utime(file)
            if hashlib.sha256(content).hexdigest() == digest:
                return content
            file.unlink(missing_ok=True)
        except OSError as error:
            log.debug("file of a task not in the cache", problem=str(error))
        return None

    def put(self, digest: str, content: bytes) -> None:
        if len(content) > self._max_bytes:
            return
        try:
            self._make_folder()
            self._make_room(len(content))
            _write(self._folder / digest, content)
        except OSError as error:
            log.warning("files of a task not kept", problem=str(error))

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_own()

    def _check_own(self) -> None:
        """Raises an OSError where there is no folder, or others could read the tests of tasks in it."""
        status = self._folder.lstat()
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077:
            raise PermissionError(f"{self._folder} is not a folder of this account alone")

    def _make_room(self, size: int) -> None:
        """Deletes the files used longest ago, and half-written files of killed workers."""
        found = []
        for file in self._folder.iterdir():
            with suppress(FileNotFoundError):
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
        total = sum(each[1] for each in found) + size
        for _, each, file in sorted(found):
            if total <= self._max_bytes:
                return
            file.unlink(missing_ok=True)
            total -= each


def _write(file: Path, content: bytes) -> None:
    """Renames the file when it is whole: another worker may read it at the same time."""
    descriptor, part = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
        Path(part).replace(file)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise
