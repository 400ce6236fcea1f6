"""A file that is there whole or not at all: written beside its place, then moved there."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from proctor.client_errors import Refused

STDOUT = "-"


async def write_file(path: Path, pieces: AsyncIterator[bytes], *, is_forced: bool) -> int:
    """Bytes written. Refuses to put itself in the place of another file unless forced."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        refuse_existing(path, is_forced=is_forced)
        size = await _write(draft, pieces)
        # Looked at again: the file may have been made while the pieces came.
        refuse_existing(path, is_forced=is_forced)
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}.", "CANNOT_WRITE") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return size


async def write_stdout(pieces: AsyncIterator[bytes]) -> None:
    """Who reads it may have seen enough, as `head` does; that is no failure."""
    try:
        async for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse_existing(path: Path, *, is_forced: bool) -> None:
    if path.is_dir():
        raise Refused(f"{path} is a folder; name a file in it.", "CANNOT_WRITE")
    if path.exists() and not is_forced:
        raise Refused(f"{path} exists; --force replaces it.", "CANNOT_WRITE")


async def _write(draft: Path, pieces: AsyncIterator[bytes]) -> int:
    size = 0
    with draft.open("xb") as file:
        async for piece in pieces:
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size
