"""The files of a task as they travel: tar files compressed by gzip."""

import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from proctor.values.rollout import TaskArtifact
from services.common.sandboxes.errors import FilesRefused
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import PackedFile, ReadFile, pack, read_files


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """Tar files of what an agent left: of its working folder, and of the task's other folders by paths from
    the root. `problem` says why there are none. `installed` are requirements of packages that it installed
    from the operator's wheels.

    `unreached` are files of a solution that the tests do not see. `over_limit` says why those of no folder of
    the task are left out.
    """

    files: bytes
    others: bytes = b""
    problem: str = ""
    installed: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    over_limit: str = ""


def inflated(bundle: bytes) -> bytes:
    """The tar of a bundle; one without members for an empty bundle. Raises FilesRefused."""
    if not bundle:
        return pack({})
    inflater, maximum = zlib.decompressobj(wbits=31), TarLimits().stream_bytes
    try:
        tar = inflater.decompress(bundle, maximum)
    except zlib.error as error:
        raise FilesRefused(path="the task", problem="its bundle is broken.") from error
    if not inflater.eof:
        raise FilesRefused(path="the task", problem=f"its bundle has more than {maximum:,} bytes.")
    return tar


def inflated_scripts(bundle: bytes) -> bytes:
    """As `inflated`, with LF for the CR LF of shell scripts, which no shell takes. Raises FilesRefused."""
    tar = inflated(bundle)
    if b"\r\n" not in tar:
        return tar
    files = read_files(io.BytesIO(tar), "the task", TarLimits())
    return pack({file.name: PackedFile(_unix_lines(file), file.mode) for file in files})


def _unix_lines(file: ReadFile) -> bytes:
    return file.content.replace(b"\r\n", b"\n") if file.name.endswith(".sh") else file.content


def below(tar: bytes, *folders: str) -> bytes:
    """The files of these folders, by their paths in them; those of a later folder replace others."""
    kept: dict[str, PackedFile] = {}
    files = list(read_files(io.BytesIO(tar), "the task", TarLimits()))
    for folder in folders:
        prefix = f"{folder}/"
        kept |= {
            file.name.removeprefix(prefix): PackedFile(file.content, file.mode)
            for file in files
            if file.name.startswith(prefix)
        }
    return pack(kept)


def at_their_folders(tars: Mapping[str, bytes]) -> bytes:
    """One tar of several folders, with paths from the root. Raises FilesRefused."""
    written = io.BytesIO()
    try:
        with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as new:
            for folder, tar in tars.items():
                above = f"{folder.strip('/')}/".lstrip("/")
                with tarfile.open(fileobj=io.BytesIO(tar), mode="r|") as old:
                    for member in old:
                        inner = str(PurePosixPath(member.name))
                        # The folder itself is there, and belongs to the sandbox.
                        if inner == ".":
                            continue
                        member.name = f"{above}{inner}"
                        if member.islnk():
                            member.linkname = f"{above}{PurePosixPath(member.linkname)}"
                        new.addfile(member, old.extractfile(member) if member.isreg() else None)
    except (tarfile.TarError, ValueError, EOFError, LookupError, OverflowError, RecursionError) as error:
        raise FilesRefused(path="the task", problem=f"the tar is broken ({type(error).__name__}).") from error
    return written.getvalue()


def with_artifacts(workspace: bytes, files: bytes, workdir: str, artifacts: Sequence[TaskArtifact]) -> bytes:
    """The workspace as it was, with those of the agent's files that are artifacts. Raises FilesRefused."""
    own = read_files(io.BytesIO(workspace), "the task", TarLimits())
    kept = {file.name: PackedFile(file.content, file.mode) for file in own}
    for file in read_files(io.BytesIO(files), workdir, TarLimits()):
        if any(_is_part(f"{workdir}/{file.name}", artifact) for artifact in artifacts):
            kept[file.name] = PackedFile(file.content, file.mode)
    return pack(kept)


def _is_part(path: str, artifact: TaskArtifact) -> bool:
    """Patterns are those of tar: of a path in the artifact, or of a name in it."""
    if path == artifact.source:
        return True
    inner = path.removeprefix(f"{artifact.source.rstrip('/')}/")
    if inner == path:
        return False
    parts = inner.split("/")
    tried = [inner, *parts, *("/".join(parts[:end]) for end in range(1, len(parts)))]
    return not any(fnmatchcase(each, pattern) for pattern in artifact.exclude for each in tried)
