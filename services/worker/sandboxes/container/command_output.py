"""The output of one command, read until it ends: its own, and what our start of it reports."""

import asyncio
from contextlib import suppress

from services.common.sandboxes.errors import SandboxLost
from services.common.sandboxes.output import KeptOutput
from services.worker.sandboxes.container.ports import END, StartedCommand
from services.worker.sandboxes.container.programs import STARTED

# How long output is read that an engine passes on after the exit code.
_LATE_SECONDS = 120.0
_WRITE_BYTES = 256 * 1024
_MAX_CONTROL_BYTES = 4000


class CommandOutput:
    """Reads and writes until `close`. Errors of the connection are raised by `is_ended_within`.

    `mark` follows the output of the command; without one, the output ends with its stream.
    """

    def __init__(
        self, command: StartedCommand, kept: KeptOutput, content: bytes = b"", mark: bytes = b""
    ) -> None:
        self.command = command
        self.kept = kept
        self._mark, self._is_marked = mark, False
        self._held = b""
        self._control = bytearray()
        self._first, self._reported, self._whole = asyncio.Event(), asyncio.Event(), asyncio.Event()
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
    def error_output(self) -> bytes:
        """Output that came instead of a start."""
        return (bytes(self._control) + bytes(self.kept.head)).strip()

    async def is_started_within(self, seconds: float) -> bool:
        """True also where it has ended instead."""
        return await _is_set_within(self._first, seconds)

    async def is_ended_within(self, seconds: float) -> bool:
        """Its output may stay open after its end, held by processes that it left in the background."""
        if not await _is_set_within(self._reported, seconds):
            return False
        await _is_set_within(self._whole, _LATE_SECONDS)
        if self._reading.done():
            self._reading.result()
        if self.code is not None and not self._is_marked:
            raise SandboxLost(problem="the rest of a command's output did not come.")
        return True

    async def close(self) -> None:
        for task in (self._reading, self._writing):
            task.cancel()
        await asyncio.gather(self._reading, self._writing, return_exceptions=True)
        await self.command.close()

    async def _read(self) -> None:
        try:
            while (part := await self.command.read()) != END:
                if not part.is_control:
                    self._keep(part.content)
                elif len(self._control) < _MAX_CONTROL_BYTES:
                    self._control += part.content
                    self._first.set()
                    if self.code is not None:
                        self._reported.set()
        finally:
            self.kept.add(self._held)
            for event in (self._first, self._reported, self._whole):
                event.set()

    def _keep(self, content: bytes) -> None:
        """All but the mark. The last bytes are held, where it may have begun."""
        if self._is_marked or not self._mark:
            self.kept.add(content)
            return
        before, mark, after = (self._held + content).partition(self._mark)
        if mark:
            self._is_marked, self._held = True, b""
            self.kept.add(before + after)
            self._whole.set()
        else:
            sure = max(0, len(before) - len(self._mark) + 1)
            self.kept.add(before[:sure])
            self._held = before[sure:]

    async def _write(self, content: bytes) -> None:
        for start in range(0, len(content), _WRITE_BYTES):
            await self.command.write(content[start : start + _WRITE_BYTES])


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
