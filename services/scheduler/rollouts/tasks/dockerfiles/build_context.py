"""The files that COPY and ADD may name: those of the folder without what .dockerignore names."""

import bz2
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import normpath

from services.scheduler.rollouts.tasks.dockerfiles.instruction import DOCKERFILE
from services.scheduler.rollouts.tasks.task_folder import MAX_TASK_BYTES, Files, FolderFile, path_problem

_IGNORED = (f"{DOCKERFILE}.dockerignore", ".dockerignore")
_WILD = re.compile(r"[*?\[]")
_TAR_MAGIC = slice(257, 262)
_LZMA_MEMORY = 128 * 1024**2
_BROKEN = (tarfile.TarError, ValueError, EOFError, LookupError, OverflowError, RecursionError)


class BadArchive(Exception):
    """An archive that is too large, or broken; the message is the problem."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file or folder that a source names: files by their paths below it, or itself by an empty path."""

    name: str
    files: Mapping[str, FolderFile]

    @property
    def is_file(self) -> bool:
        return "" in self.files


def without_ignored(files: Files) -> Files:
    """The last pattern that matches a path, or a folder that it is in, decides; `!` takes it back."""
    file = next((files[name] for name in _IGNORED if name in files), None)
    if file is None:
        return files
    lines = (
        line.strip() for line in file.content.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    )
    rules = [(line[:1] == "!", _pattern(line.removeprefix("!"))) for line in lines if line and line[0] != "#"]
    return {path: each for path, each in files.items() if not _is_ignored(path, rules)}


def _is_ignored(path: str, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    parts = path.split("/")
    places = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    matching = [is_kept for is_kept, pattern in rules if any(map(pattern.fullmatch, places))]
    return bool(matching) and not matching[-1]


def find_sources(files: Files, source: str) -> Iterator[Found]:
    """What a source names, which lies in the folder whatever it says; several where it is a pattern."""
    inner = normpath(f"/{source}").lstrip("/")
    if not _WILD.search(inner):
        if found := _below(files, inner):
            yield Found(inner.rsplit("/", 1)[-1], found)
        return
    pattern, depth = _pattern(inner), inner.count("/") + 1
    places = {"/".join(path.split("/")[:depth]) for path in files if path.count("/") + 1 >= depth}
    for place in sorted(filter(pattern.fullmatch, places)):
        yield Found(place.rsplit("/", 1)[-1], _below(files, place))


def _below(files: Files, place: str) -> dict[str, FolderFile]:
    if not place:
        return dict(files)
    if place in files:
        return {"": files[place]}
    prefix = f"{place}/"
    return {path.removeprefix(prefix): file for path, file in files.items() if path.startswith(prefix)}


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of Go's filepath.Match, with ** for any number of folders."""
    parts, rest = [], normpath(f"/{text}").lstrip("/")
    while rest:
        if rest.startswith("**"):
            rest = rest[2:].removeprefix("/") if rest.startswith("**/") else rest[2:]
            parts.append("(?:.*/)?" if rest else ".*")
            continue
        found = re.match(r"\[\^?[^\]]+\]", rest)
        if found:
            parts.append(found[0].replace("\\", "\\\\"))
            rest = rest[found.end() :]
            continue
        if rest[0] == "\\" and len(rest) > 1:
            rest = rest[1:]
            parts.append(re.escape(rest[0]))
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(rest[0]) or re.escape(rest[0]))
        rest = rest[1:]
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        # Docker refuses it; here it matches itself only.
        return re.compile(re.escape(text))


def unpacked(content: bytes) -> tuple[Files, int] | None:
    """Files of a tar, compressed or not, and the number of its links; None where it is none.

    Raises BadArchive.
    """
    tar = _inflated(content)
    if tar[_TAR_MAGIC] != b"ustar":
        return None
    files, links = {}, 0
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as opened:
            for member in opened:
                path = normpath(member.name)
                if member.isreg() and not member.issparse():
                    if problem := path_problem(path):
                        raise BadArchive(problem)
                    read = opened.extractfile(member)
                    files[path] = FolderFile(read.read() if read else b"", bool(member.mode & 0o100))
                elif not member.isdir():
                    links += 1
    except _BROKEN as error:
        raise BadArchive(f"the archive is broken ({type(error).__name__}).") from error
    return files, links


def _inflated(content: bytes) -> bytes:
    """At most the bytes of a task: what is compressed may be a thousand times as large."""
    limit = MAX_TASK_BYTES + 1
    try:
        if content.startswith(b"\x1f\x8b"):
            inflated = zlib.decompressobj(wbits=31).decompress(content, limit)
        elif content.startswith(b"BZh"):
            inflated = bz2.BZ2Decompressor().decompress(content, limit)
        elif content.startswith(b"\xfd7zXZ\x00"):
            inflated = lzma.LZMADecompressor(memlimit=_LZMA_MEMORY).decompress(content, limit)
        else:
            return content
    except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
        raise BadArchive(f"the archive is broken ({type(error).__name__}).") from error
    if len(inflated) == limit:
        raise BadArchive(f"the archive has more than {MAX_TASK_BYTES:,} bytes.")
    return inflated
