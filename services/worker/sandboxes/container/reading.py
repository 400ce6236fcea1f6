"""The output of one command, read until it ends: its own, and what our start of it reports."""

import asyncio
import time

from services.worker.sandboxes.container.ports import END, StartedCommand
from services.worker.sandboxes.container.programs import STARTED
from services.worker.sandboxes.output import KeptOutput

_LOOK_SECONDS = 0.25
# What is left in pipes at the end of a command is there at once; what it left in the background may write on.
_DRAIN_SECONDS = 1.0
_WRITE_BYTES = 256 * 1024
_MAX_CONTROL_BYTES = 4000


class Reading:
    """Reads and writes until `close`. Errors of the connection are raised by `is_ended_within`."""

    def __init__(self, execution: StartedCommand, kept: KeptOutput, content: bytes = b"") -> None:
        self.execution = execution
        self.kept = kept
        self._control = bytearray()
        self._first = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="read the output of a command")
        self._writing = asyncio.create_task(self._write(content), name="write the input of a command")

    @property
    def is_started(self) -> bool:
        return self._control.startswith(STARTED)

    @property
    def code(self) -> int | None:
        """Exit code that the start of the command reported at its end; None before."""
        report = bytes(self._control[len(STARTED) :])
        return int(report) if report.endswith(b"\n") and report.strip().isdigit() else None

    @property
    def complaint(self) -> bytes:
        """Output that came instead of a start."""
        return (bytes(self._control) + bytes(self.kept.head)).strip()

    async def is_started_within(self, seconds: float) -> bool:
        """True also where it has ended instead."""
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return False
        return True

    async def is_ended_within(self, seconds: float) -> bool:
        """Its output may stay open after its end, held by processes that it left in the background."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.wait((self._reading,), timeout=min(_LOOK_SECONDS, left))
            if self._reading.done():
                self._reading.result()
                return True
            if self.code is not None:
                await self._drain(min(end, time.monotonic() + _DRAIN_SECONDS))
                return True
        return False

    async def close(self) -> None:
        for task in (self._reading, self._writing):
            task.cancel()
        await asyncio.gather(self._reading, self._writing, return_exceptions=True)
        await self.execution.close()

    async def _read(self) -> None:
        try:
            while (part := await self.execution.read()) != END:
                if not part.is_control:
                    self.kept.add(part.content)
                elif len(self._control) < _MAX_CONTROL_BYTES:
                    self._control += part.content
                    self._first.set()
        finally:
            self._first.set()

    async def _write(self, content: bytes) -> None:
        for start in range(0, len(content), _WRITE_BYTES):
            await self.execution.write(content[start : start + _WRITE_BYTES])

    async def _drain(self, end: float) -> None:
        """Reads on until nothing more comes: output from before the end may still be on its way."""
        before = -1
        while (left := end - time.monotonic()) > 0 and not self._reading.done() and self.kept.total != before:
            before = self.kept.total
            await asyncio.wait((self._reading,), timeout=min(_LOOK_SECONDS, left))
