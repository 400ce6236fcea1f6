"""The process's end of a check: the job and pieces of the file come in, objects and the result go out."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, Any, TypeAlias

from services.common.errors import DomainError, ObjectStoreUnavailable
from services.common.processes.frames import read_frame, write_frame
from services.common.processes.limits import limit_resources
from services.common.processes.plain_values import from_bytes, to_bytes
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.processes.check_frames import (
    ERROR,
    MEMORY_BYTES,
    PIECE,
    PUT,
    RESULT,
    joined_key,
)

# A check of one kind, for the pieces of the file and the objects that it stores.
DoCheck: TypeAlias = Callable[[Any, Iterable[bytes], Objects], object]

# The check of an upload runs after the scheduler's own loops.
_NICENESS = 5


def serve_check(kinds: Mapping[type, DoCheck]) -> None:
    """The work of a process: one check of one of these kinds."""
    limit_resources(address_bytes=MEMORY_BYTES, cpu_seconds=int(sys.argv[1]))
    os.nice(_NICENESS)
    pieces, give = sys.stdin.buffer, partial(write_frame, sys.stdout.buffer)
    kind, check = _job(kinds, _given(pieces)[1])
    try:
        give(RESULT, to_bytes(kinds[kind](check, _pieces(pieces), _PipedObjects(give))))
    except DomainError as error:
        give(ERROR, _error(error))
    except OSError as error:
        # From temporary files of the check.
        give(ERROR, _error(ObjectStoreUnavailable(problem=f"no room for the check ({error.strerror})")))


def _job(kinds: Mapping[type, DoCheck], content: bytes) -> tuple[type, object]:
    name, values = from_bytes(content, tuple[str, bytes])
    kind = next(kind for kind in kinds if kind.__name__ == name)
    return kind, from_bytes(values, kind)


def _error(error: DomainError) -> bytes:
    return to_bytes((type(error).__name__, error.facts))


class _PipedObjects:
    """The objects in the process: what is stored is written to the scheduler."""

    def __init__(self, give: Callable[..., None]) -> None:
        self._give = give

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        self._give(PUT, joined_key(key), *chunks)


def _given(stream: IO[bytes]) -> tuple[bytes, bytes]:
    frame = read_frame(stream)
    if frame is None:
        # The scheduler has given the upload up.
        sys.exit(1)
    return frame


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while (given := _given(stream))[0] == PIECE:
        yield given[1]
