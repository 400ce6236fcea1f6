"""Checks an upload in a process of its own: pieces of the file go in, objects and the result come out.

Several uploads are checked at a time, and none holds up the event loop. The process has limits of memory and
time, and no secrets: the scheduler stores for it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Any

from services.common.errors import DomainError, Fact, ObjectStoreUnavailable
from services.common.processes.child_process import ChildProcess
from services.common.processes.commands import inherited_environment, module_command
from services.common.processes.plain_values import UnexpectedValue, from_bytes, to_bytes
from services.scheduler.uploads.errors import (
    CheckStopped,
    DatasetTooLarge,
    FileTooLarge,
    ProjectStorageQuotaExceeded,
    StorageQuotaExceeded,
)
from services.scheduler.uploads.ports import CheckJob, Objects
from services.scheduler.uploads.processes.check_frames import (
    END,
    JOB,
    MAX_FRAME_BYTES,
    MEMORY_BYTES,
    PIECE,
    PUT,
    RESULT,
    split_object,
)

_LAST_SECONDS = 5.0
# A process that reads a hostile file may name any other.
_ERRORS: dict[str, type[DomainError]] = {
    error.__name__: error
    for error in (
        DatasetTooLarge,
        FileTooLarge,
        ObjectStoreUnavailable,
        ProjectStorageQuotaExceeded,
        StorageQuotaExceeded,
    )
}


@dataclass(frozen=True, slots=True)
class CheckingProcess:
    """The scheduler's end."""

    child: ChildProcess
    job: CheckJob[Any]
    objects: Objects
    prefixes: tuple[str, ...]

    async def begin(self) -> None:
        check = self.job.check
        await self._send(JOB, to_bytes((type(check).__name__, to_bytes(check))))

    async def add(self, piece: bytes) -> None:
        await self._send(PIECE, piece)

    async def finish(self) -> None:
        await self._send(END)

    async def result(self) -> Any:
        """Stores what the check stores, one object at a time. Raises its error, or `CheckStopped`.

        A process that reads a hostile file may send any bytes: they are a value of the result, or no result.
        """
        try:
            while True:
                kind, content = await self.child.receive(MAX_FRAME_BYTES)
                if kind == PUT:
                    await self._put(*split_object(content))
                elif kind == RESULT:
                    return from_bytes(content, self.job.checked)
                else:
                    raise _error_of(content)
        except (EOFError, UnexpectedValue) as error:
            raise CheckStopped(gibibytes=MEMORY_BYTES // 1024**3) from error

    async def _put(self, key: str, content: bytes) -> None:
        if not key.startswith(self.prefixes) or ".." in key:
            raise UnexpectedValue(f"{key} is not below {self.prefixes}")
        try:
            await asyncio.to_thread(self.objects.put, key, [content])
        except ObjectStoreUnavailable:
            self.child.process.kill()
            raise

    async def end(self, *, is_done: bool) -> None:
        """Stops the process, which ends by itself if it is done."""
        await self.child.end(_LAST_SECONDS if is_done else 0.0)

    async def _send(self, kind: bytes, content: bytes = b"") -> None:
        """Waits while the process is busy; has no effect once it has ended, which `result` reports."""
        with suppress(ConnectionError):
            await self.child.send(kind, content)


def _error_of(content: bytes) -> DomainError:
    name, facts = from_bytes(content, tuple[str, dict[str, Fact]])
    try:
        return _ERRORS[name](**facts)
    except KeyError as error:
        raise UnexpectedValue(f"{name} with {sorted(facts)} is not an error of a check") from error


async def start_check(
    job: CheckJob[Any], objects: Objects, prefixes: Sequence[str], seconds: float
) -> CheckingProcess:
    """It stores in the folders `prefixes` only.

    `seconds` is the upload's limit; that of the processor is higher.
    """
    command = module_command(job.program, str(ceil(seconds) + 60))
    child = await ChildProcess.start(command, inherited_environment())
    return CheckingProcess(child, job, objects, tuple(f"{prefix}/" for prefix in prefixes))
