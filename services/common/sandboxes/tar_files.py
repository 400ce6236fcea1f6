"""Tar streams that go into a sandbox, and those that come out of one.

What comes out was written by hostile code: members are read as a stream, by a budget of bytes and members,
and are never unpacked. Names are values here, not paths of this machine.
"""

import io
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from services.common.sandboxes.errors import FilesOverLimit, FilesRefused
from services.common.sandboxes.sandbox import TarLimits

DEFAULT_MODE = 0o644
# PATH_MAX of Linux.
_MAX_NAME_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class PackedFile:
    content: bytes
    mode: int = DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A regular file of a tar; `name` is relative, without `..`, and valid Unicode."""

    name: str
    content: bytes
    mode: int


def pack(files: Mapping[str, bytes | PackedFile]) -> bytes:
    """The same files give the same bytes: names are sorted, times and owners are zero."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            file = files[name]
            packed = file if isinstance(file, PackedFile) else PackedFile(file)
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(packed.content), packed.mode
            tar.addfile(member, io.BytesIO(packed.content))
    return written.getvalue()


def read_files(stream: BinaryIO, path: str, limits: TarLimits) -> Iterator[ReadFile]:
    """Yields regular files; links, devices and pipes are passed over. `path` is for messages only.

    Raises FilesRefused where a name leaves the folder, where the tar is broken, or over the limits.
    """
    budget, members, shown = limits.total_bytes, 0, _ShownNames()
    try:
        with tarfile.open(fileobj=_Bounded(stream, limits, path), mode="r|") as tar:
            for member in tar:
                members += 1
                if members > limits.members:
                    raise FilesOverLimit(path=path, problem=f"there are more than {limits.members:,}.")
                name = _relative(member.name, path)
                if not member.isreg() or not name:
                    continue
                # A sparse file is small in the tar and large when it is read.
                budget -= member.size
                if budget < 0:
                    raise _too_large(path, limits.total_bytes)
                content = tar.extractfile(member)
                yield ReadFile(shown.of(name), content.read() if content else b"", member.mode & 0o777)
                tar.members.clear()  # type: ignore[attr-defined]  # a stream needs none, and keeps all
    # A tar of hostile headers also ends tarfile by its recursion, and by what it looks up.
    except (tarfile.TarError, ValueError, EOFError, LookupError, OverflowError, RecursionError) as error:
        raise FilesRefused(path=path, problem=f"the tar is broken ({type(error).__name__}).") from error


def check_tar(stream: BinaryIO, path: str, limits: TarLimits) -> None:
    """Reads it once. Raises FilesRefused as `read_files` does."""
    for _ in read_files(stream, path, limits):
        pass


def _relative(name: str, path: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or len(name) > _MAX_NAME_CHARACTERS or "\0" in name:
        raise FilesRefused(path=path, problem=f"the name {name[:100]!r} leaves the folder.")
    return "/".join(parts)


class _ShownNames:
    """Names of one tar as text: on Linux they may have bytes outside UTF-8, which no message can hold."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._taken: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def of(self, name: str) -> str:
        """Different names stay different; a file that is in the tar twice has its name twice."""
        if name not in self._shown:
            self._shown[name] = self._free(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        return self._shown[name]

    def _free(self, wanted: str) -> str:
        shown = wanted
        while shown in self._taken:
            self._repeats[wanted] += 1
            shown = f"{wanted}~{self._repeats[wanted] + 1}"
        self._taken.add(shown)
        return shown


def _too_large(path: str, maximum: int) -> FilesOverLimit:
    return FilesOverLimit(path=path, problem=f"they have more than {maximum:,} bytes.")


class _Bounded(io.RawIOBase):
    """Ends a read beyond the budget: a header may announce gigabytes, which tarfile reads whole."""

    def __init__(self, stream: BinaryIO, limits: TarLimits, path: str) -> None:
        self._stream, self._left, self._most, self._path = (
            stream,
            limits.stream_bytes,
            limits.total_bytes,
            path,
        )

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        content = self._stream.read(wanted)
        self._left -= len(content)
        if self._left < 0:
            raise _too_large(self._path, self._most)
        return content
