"""Checks an upload in a process of its own: pieces of the file go in, objects and the result come out.

Several uploads are checked at a time, and none holds up the event loop. The process has limits of memory and
time, and no secrets: the scheduler stores for it.
"""

import asyncio
import io
import json
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import IO, Any

from services.common.child_process import ChildProcess
from services.common.errors import DomainError
from services.scheduler.suites.rows.resource_limits import limit_resources
from services.scheduler.uploads import errors
from services.scheduler.uploads.errors import CheckStopped, ObjectStoreUnavailable
from services.scheduler.uploads.ports import Check, Checked, Objects

# See decision 0022; a check that needs more is ended, with a sentence.
MEMORY_BYTES = 4 * 1024 * 1024 * 1024
# The check of an upload runs after the scheduler's own loops.
_NICENESS = 5
# Maximum bytes of a message of the process: more than any object or result has.
_MAX_BYTES = 512 * 1024 * 1024
_LAST_SECONDS = 5.0
_HEAD = struct.Struct("<cQ")
_KEY = struct.Struct("<H")
_JOB, _PIECE, _END, _PUT, _RESULT, _ERROR = (bytes([sign]) for sign in b"JCEPRX")
_ERRORS = (
    "DatasetTooLarge",
    "FileTooLarge",
    "ObjectStoreUnavailable",
    "ProjectStorageQuotaExceeded",
    "StorageQuotaExceeded",
)
_RESULT_MODULES = "services.scheduler.uploads."


@dataclass(frozen=True, slots=True)
class CheckingProcess:
    """The scheduler's end."""

    child: ChildProcess
    objects: Objects
    prefixes: tuple[str, ...]

    async def begin(self, check: Check[Checked]) -> None:
        """Sends the pickled check. Its object store is replaced by a proxy to this process."""
        job = io.BytesIO()
        pickler = pickle.Pickler(job)
        # A subclass would do the same in more lines.
        pickler.persistent_id = self._reference_to  # type: ignore[method-assign]  # the hook of `pickle` for its users
        pickler.dump(check)
        await self._send(_JOB, job.getvalue())

    def _reference_to(self, pickled: object) -> str | None:
        """The object store is replaced in the process; everything else is pickled."""
        return "objects" if pickled is self.objects else None

    async def add(self, piece: bytes) -> None:
        await self._send(_PIECE, piece)

    async def finish(self) -> None:
        await self._send(_END, b"")

    async def result(self) -> Any:
        """Stores what the check stores, one object at a time. Raises its error, or `CheckStopped`."""
        while True:
            try:
                kind, length = _HEAD.unpack(await self.child.output.readexactly(_HEAD.size))
                content = await self.child.output.readexactly(min(length, _MAX_BYTES))
            except asyncio.IncompleteReadError as error:
                raise CheckStopped(gibibytes=MEMORY_BYTES // 1024**3) from error
            if kind == _PUT:
                [size] = _KEY.unpack_from(content)
                key, start = content[_KEY.size : _KEY.size + size].decode(), _KEY.size + size
                # A process that reads a hostile file may name the key of another upload.
                if not key.startswith(self.prefixes) or ".." in key:
                    raise CheckStopped(gibibytes=MEMORY_BYTES // 1024**3)
                await self._put(key, content[start:])
            elif kind == _RESULT:
                return _Result(io.BytesIO(content)).load()
            else:
                name, facts = json.loads(content)
                raise getattr(errors, name if name in _ERRORS else "CheckStopped")(**facts)

    async def _put(self, key: str, content: bytes) -> None:
        try:
            await asyncio.to_thread(self.objects.put, key, [content])
        except ObjectStoreUnavailable:
            self.child.process.kill()
            raise

    async def end(self, *, is_done: bool) -> None:
        """Stops the process, which ends by itself if it is done."""
        await self.child.end(_LAST_SECONDS if is_done else 0.0)

    async def _send(self, kind: bytes, content: bytes) -> None:
        """Waits while the process is busy; has no effect once it has ended, which `result` reports."""
        with suppress(ConnectionError):
            await self.child.write(_HEAD.pack(kind, len(content)), content)


async def start_check(objects: Objects, prefixes: Sequence[str], seconds: float) -> CheckingProcess:
    """It stores below `prefixes` only. `seconds` is the upload's limit; that of the processor is higher."""
    command = (sys.executable, "-I", "-m", __name__, str(ceil(seconds) + 60))
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    return CheckingProcess(await ChildProcess.start(command, environment), objects, tuple(prefixes))


class _Result(pickle.Unpickler):
    """Reads values of uploads only: a process that reads a hostile file may send any bytes."""

    def find_class(self, module: str, name: str) -> Any:
        is_plain = module.startswith(_RESULT_MODULES) and "." not in name
        found = super().find_class(module, name) if is_plain else None
        # Neither what a module imports nor its functions.
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is not a value of an upload")
        return found


class _Job(pickle.Unpickler):
    """Reads the check, which comes from the scheduler."""

    def __init__(self, content: bytes, objects: Objects) -> None:
        super().__init__(io.BytesIO(content))
        self._objects = objects

    def persistent_load(self, _: object) -> Objects:
        return self._objects


class _PipedObjects:
    """The objects in the process: what is stored is written to the scheduler."""

    def __init__(self, give: Callable[[bytes, bytes], None]) -> None:
        self._give = give

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        name = key.encode()
        self._give(_PUT, b"".join((_KEY.pack(len(name)), name, *chunks)))


def _given(stream: IO[bytes]) -> tuple[bytes, bytes]:
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        # The scheduler has given the upload up.
        sys.exit(1)
    kind, length = _HEAD.unpack(head)
    return kind, stream.read(length)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while (given := _given(stream))[0] == _PIECE:
        yield given[1]


def _give(stream: IO[bytes], kind: bytes, content: bytes) -> None:
    stream.write(_HEAD.pack(kind, len(content)))
    stream.write(content)
    stream.flush()


def main() -> None:
    """The work of the process."""
    limit_resources(MEMORY_BYTES, int(sys.argv[1]))
    os.nice(_NICENESS)
    give = partial(_give, sys.stdout.buffer)
    _, job = _given(sys.stdin.buffer)
    check = _Job(job, _PipedObjects(give)).load()
    try:
        give(_RESULT, pickle.dumps(check(_pieces(sys.stdin.buffer)), protocol=5))
    except DomainError as error:
        give(_ERROR, json.dumps((type(error).__name__, error.facts)).encode())
    except OSError as error:
        # From temporary files of the check.
        refusal = ObjectStoreUnavailable(problem=f"no room for the check ({error.strerror})")
        give(_ERROR, json.dumps((type(refusal).__name__, refusal.facts)).encode())


if __name__ == "__main__":
    main()
