"""The files of a log: one, or those of a zip archive, which are read in memory and never unpacked."""

import lzma
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

from zstandard import ZstdDecompressor, ZstdError

from services.scheduler.imports.logs.document import (
    MAX_DOCUMENT_BYTES,
    MAX_LINE_BYTES,
    LogProblem,
    parsed,
)

_MAX_FILES = 1_000_000
# Text compresses to a tenth, repeated rows to a hundredth: more is a bomb, but for small files.
_MAX_EXPANSION = 1000
_FREE_BYTES = 64 * 1024 * 1024
# zipfile of Python before 3.14 does not know this method, which newer logs of Inspect have.
_ZSTD_METHOD = 93
_LOCAL_HEADER_BYTES = 30
# What a clone without Git LFS has in the place of a large file.
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# zipfile lets through what its parts raise: a place before the file, an extra field that is cut.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, ZstdError, struct.error),
    *(EOFError, IndexError, ValueError, NotImplementedError, RuntimeError, OSError),
)


class LogFiles:
    """`names` are paths in the archive, sorted, or the name of the one file."""

    def __init__(self, file: BinaryIO, name: str, most_bytes: int) -> None:
        self._file = file
        self._left = most_bytes
        self._most = most_bytes
        self._archive: zipfile.ZipFile | None = None
        start = file.read(4)
        file.seek(0)
        if start.startswith(b"PK"):
            self._open_archive(name)
        else:
            self.names = [name]

    def has(self, name: str) -> bool:
        return name in self.names

    def lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Lines that are not blank, with their numbers from 1."""
        with self._opened(name) as stream:
            number = 0
            while line := self._read(stream.readline(MAX_LINE_BYTES + 1), name):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise LogProblem(f"Line {number} of {name} has more than {MAX_LINE_BYTES:,} bytes.")
                if line.strip():
                    yield number, line

    def begins_with(self, name: str) -> bytes:
        """The first bytes that are no white space."""
        with self._opened(name) as stream:
            return self._read(stream.read(4096), name).lstrip()[:64]

    def document(self, name: str) -> object:
        """The JSON of a whole file."""
        with self._opened(name) as stream:
            content = self._read(stream.read(MAX_DOCUMENT_BYTES + 1), name)
        if len(content) > MAX_DOCUMENT_BYTES:
            raise LogProblem(f"{name} has more than {MAX_DOCUMENT_BYTES:,} bytes.")
        return parsed(content, name)

    def _read(self, content: bytes, name: str) -> bytes:
        if content.startswith(_LFS_POINTER):
            raise LogProblem(f"{name} is a pointer of Git LFS, not the file itself. Fetch it: git lfs pull.")
        self._left -= len(content)
        if self._left < 0:
            raise LogProblem(f"Its files up to {name} have more than {self._most:,} bytes. Import a part.")
        return content

    def _open_archive(self, name: str) -> None:
        try:
            self._archive = zipfile.ZipFile(self._file)
        except _BROKEN as error:
            raise LogProblem(f"{name} is a broken zip archive ({error}).") from error
        files = [each for each in self._archive.infolist() if not each.is_dir()]
        if len(files) > _MAX_FILES:
            raise LogProblem(f"{name} has more than {_MAX_FILES:,} files.")
        size = sum(each.file_size for each in files)
        packed = sum(each.compress_size for each in files)
        if size > _FREE_BYTES and size > _MAX_EXPANSION * max(packed, 1):
            raise LogProblem(f"{name} expands to {size:,} bytes, which no log does.")
        self.names = sorted({each.filename for each in files})

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        if self._archive is None:
            self._file.seek(0)
            yield self._file
            return
        try:
            info = self._archive.getinfo(name)
            if info.compress_type == _ZSTD_METHOD:
                with self._unzstd(info) as stream:
                    yield stream
            else:
                with self._archive.open(info) as stream:
                    yield stream
        except _BROKEN as error:
            raise LogProblem(f"{name} cannot be read from the archive ({error}).") from error

    @contextmanager
    def _unzstd(self, info: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
        """The member without the help of zipfile, spooled to a file of at most the size that it declares."""
        self._file.seek(info.header_offset)
        header = self._file.read(_LOCAL_HEADER_BYTES)
        if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile("a local header is missing")
        skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        self._file.seek(info.header_offset + _LOCAL_HEADER_BYTES + skipped)
        packed = self._file.read(info.compress_size)
        with tempfile.SpooledTemporaryFile(_FREE_BYTES) as spooled:
            for chunk in ZstdDecompressor().read_to_iter(packed):
                if spooled.tell() + len(chunk) > min(info.file_size, self._most):
                    raise zipfile.BadZipFile("it is larger than it says")
                spooled.write(chunk)
            spooled.seek(0)
            yield cast("IO[bytes]", spooled)
