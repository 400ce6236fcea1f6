"""Task folders in a git repository of this machine, bare or a work tree, at a revision.

Objects alone are read: hooks, filters, attributes, submodules and remotes of a repository have no effect.
"""

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from proctor.client.errors import Refused
from proctor.values.rollout import MAX_PATH_BYTES, MAX_SET_BYTES, MAX_SET_FILES

DEFAULT_REVISION = "HEAD"
_CHUNK_BYTES = 64 * 1024
_SECONDS = 120.0
_FILE, _PROGRAM, _LINK, _SUBMODULE = "100644", "100755", "120000", "160000"
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A partial clone would fetch what it lacks, by a command that its configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class GitFolder:
    """A folder of a commit, written to `path`."""

    repository: str
    commit: str
    inner: str
    path: Path

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}:{self.inner}"


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    digest: str
    size: int
    path: str


def export_folder(repository: str, revision: str, inner: str, into: Path) -> GitFolder:
    """Writes a folder of the repository below `into`. Raises Refused."""
    git = _git_of(repository)
    commit = git.commit(revision)
    inner = inner.strip("/").removeprefix("./")
    inner = "" if inner == "." else inner
    entries = git.entries(commit, inner)
    name = Path(inner).name or _folder_of(repository).resolve().name.removesuffix(".git")
    target = Path(tempfile.mkdtemp(dir=into)) / name
    target.mkdir()
    try:
        git.write(entries, target)
    except OSError as error:
        raise Refused(f"{repository} cannot be written: {error.strerror}.") from error
    return GitFolder(repository, commit, inner or ".", target)


def read_file(repository: str, revision: str, path: str) -> bytes:
    """The content of one file. Raises Refused."""
    git = _git_of(repository)
    return git.file(git.commit(revision), path)


def _git_of(repository: str) -> "_Git":
    folder = _folder_of(repository)
    return _Git(folder / ".git" if (folder / ".git").exists() else folder, repository)


def _folder_of(repository: str) -> Path:
    """Raises Refused for a repository of another machine."""
    url = urlsplit(repository)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        repository = unquote(url.path)
    elif "://" in repository or "::" in repository:
        raise Refused(f"{repository} is not on this machine. Clone it, and name the path of the clone.")
    folder = Path(repository).expanduser()
    if not folder.is_dir():
        raise Refused(f"There is no git repository {repository}.")
    return folder


@dataclass(frozen=True, slots=True)
class _Git:
    git_dir: Path
    shown: str

    def commit(self, revision: str) -> str:
        named = (
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision or DEFAULT_REVISION}^{{commit}}",
        )
        return self._output(named, f"it has no revision {revision or DEFAULT_REVISION}").decode().strip()

    def file(self, commit: str, path: str) -> bytes:
        return self._output(("cat-file", "blob", f"{commit}:{path}"), f"it has no file {path}")

    def entries(self, commit: str, inner: str) -> Sequence[_Entry]:
        """Raises Refused over the limits, and for what is not a regular file."""
        listing = ["ls-tree", "-r", "-z", "-l", "--full-tree", commit]
        if inner:
            listing += ["--", f":(literal){inner}/"]
        found: list[_Entry] = []
        total = 0
        for line in self._lines(listing):
            entry = self._entry(line, inner)
            found.append(entry)
            total += entry.size
            if len(found) > MAX_SET_FILES or total > MAX_SET_BYTES:
                raise self._refused(f"it has more than {MAX_SET_FILES:,} files or {MAX_SET_BYTES:,} bytes")
        if not found:
            raise self._refused(f"{commit} has no folder {inner or '.'}")
        return found

    def write(self, entries: Sequence[_Entry], target: Path) -> None:
        """Raises Refused, and OSError."""
        with tempfile.TemporaryFile() as digests:
            digests.write("".join(f"{entry.digest}\n" for entry in entries).encode())
            digests.seek(0)
            with self._started(("cat-file", "--batch"), digests) as reading, _bounded(reading) as contents:
                for entry in entries:
                    _write(target / entry.path, self._content(entry, contents), entry.mode)

    def _content(self, entry: _Entry, stream: IO[bytes]) -> Iterator[bytes]:
        header = stream.readline().split()
        if header[1:] != [b"blob", str(entry.size).encode()]:
            raise self._refused(f"{entry.path} is missing, or has changed")
        left = entry.size
        while left:
            chunk = stream.read(min(left, 1024 * 1024))
            if not chunk:
                raise self._refused(f"{entry.path} is cut off")
            left -= len(chunk)
            yield chunk
        stream.read(1)

    def _entry(self, line: bytes, inner: str) -> _Entry:
        facts, _, name = line.partition(b"\t")
        mode, _, digest, size = facts.decode().split()
        try:
            path = name.decode().removeprefix(f"{inner}/") if inner else name.decode()
        except UnicodeDecodeError as error:
            raise self._refused("a name in it is not UTF-8") from error
        if mode == _SUBMODULE:
            raise self._refused(f"{path} is a submodule, which is not fetched. Put its files there")
        if mode == _LINK:
            raise self._refused(f"{path} is a link. Put a copy of the file there")
        parts = path.split("/")
        is_plain = all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts)
        if mode not in (_FILE, _PROGRAM) or not is_plain or len(name) > MAX_PATH_BYTES:
            raise self._refused(f"{path[:100]!r} is not a plain file")
        if not size.isdigit():
            raise self._refused(f"{path} is missing, as in a partial clone")
        return _Entry(mode, digest, int(size), path)

    def _lines(self, arguments: Sequence[str]) -> Iterator[bytes]:
        """Read as they come: a small repository may name the same folder over and over again."""
        with self._started(arguments, subprocess.DEVNULL) as listing, _bounded(listing) as stream:
            rest = b""
            while chunk := stream.read(_CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\0")
                yield from lines
                if len(rest) > _CHUNK_BYTES:
                    raise self._refused("a name in it is too long")
            if listing.wait():
                raise self._refused("its files cannot be listed")

    def _output(self, arguments: Sequence[str], problem: str) -> bytes:
        with self._started(arguments, subprocess.DEVNULL, subprocess.PIPE) as running:
            try:
                output, errors = running.communicate(timeout=_SECONDS)
            except subprocess.TimeoutExpired as error:
                running.kill()
                raise self._refused(f"{problem} within {_SECONDS:g} s") from error
        if running.returncode:
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            raise self._refused(f"{problem} ({lines[-1][:200]})" if lines else problem)
        return output

    def _started(
        self, arguments: Sequence[str], stdin: int | IO[bytes], stderr: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        # Its owner may be another user; nothing of it is executed.
        command = ("git", "--no-pager", "-c", "safe.directory=*", "-c", "core.fsmonitor=false")
        try:
            return subprocess.Popen(
                (*command, f"--git-dir={self.git_dir}", *arguments),
                env={"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        except FileNotFoundError as error:
            raise Refused("git is not installed: tasks of a repository need it.") from error

    def _refused(self, problem: str) -> Refused:
        return Refused(f"{self.shown} cannot be read as tasks: {problem}.")


@contextmanager
def _bounded(process: subprocess.Popen[bytes]) -> Iterator[IO[bytes]]:
    """Its output, which ends with the block and after some time."""
    assert process.stdout is not None
    timer = threading.Timer(_SECONDS, process.kill)
    timer.start()
    try:
        yield process.stdout
    finally:
        timer.cancel()
        process.kill()


def _write(path: Path, content: Iterator[bytes], mode: str) -> None:
    """A file that a tree names twice is an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o755 if mode == _PROGRAM else 0o644), "wb") as file:
        for chunk in content:
            file.write(chunk)
