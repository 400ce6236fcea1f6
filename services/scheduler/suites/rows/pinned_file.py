"""A file of rows and its digest: rows read later must come from the very file that it was taken of."""

import errno
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from services.scheduler.suites.rows.row_source import UnreadableRow


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """`state` changes whenever the file is written or replaced."""

    path: Path
    digest: str
    state: tuple[int, int, int]

    def open(self) -> BinaryIO:
        try:
            content = self.path.open("rb")
        except OSError as error:
            raise UnreadableRow(1, f"the file cannot be read again ({error.strerror})") from error
        return content

    def require_unchanged(self, content: BinaryIO, row: int) -> None:
        """Called per row (a microsecond), because the digest must be that of the rows read."""
        if _state(content) != self.state:
            raise UnreadableRow(row, "the file was changed since its digest was taken")


def pin_file(path: Path) -> PinnedFile:
    """Reads the file once for its digest. Raises `OSError`."""
    if not S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    with path.open("rb") as content:
        state = _state(content)
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return PinnedFile(path, digest, state)


def _state(content: BinaryIO) -> tuple[int, int, int]:
    facts = os.fstat(content.fileno())
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
