"""The worker's side of a model port: what connects to the relay beside a sandbox is connected again here."""

import asyncio
import socket
import struct
from contextlib import suppress

from services.common.sandboxes.errors import SandboxLost
from services.worker.sandboxes.container.ports import END, StartedCommand
from services.worker.sandboxes.container.programs import STARTED

_HEADER = struct.Struct("!II")
_START_SECONDS = 60.0
_READ_BYTES = 65536
_MAX_FRAME_BYTES = 1024 * 1024


class ModelRelay:
    """The relay's frames are read as those of a stranger: their size is bounded."""

    def __init__(self, command: StartedCommand) -> None:
        self._command = command
        self._buffer = bytearray()
        self._listening: socket.socket | None = None
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._answers: dict[int, asyncio.Task[None]] = {}
        self._pump: asyncio.Task[None] | None = None

    async def open(self, port: int) -> None:
        """Raises SandboxLost where the relay cannot listen on `port`."""
        await self._command.write(b"%d\n" % port)
        try:
            async with asyncio.timeout(_START_SECONDS):
                answer = (await self._command.read()).content
        except TimeoutError as error:
            raise SandboxLost(problem="its model port could not be opened in time.") from error
        if answer != STARTED:
            shown = answer.decode("utf-8", "replace").strip()[-200:]
            raise SandboxLost(problem=f"its model port could not be opened ({shown}).")
        self._pump = asyncio.create_task(self._run(), name="relay a model port")

    def listen(self) -> socket.socket:
        """The worker's own socket, on its loopback: its caller asks those who connect for a token.

        A later one takes the place of an earlier one, which its caller has closed. Raises SandboxLost.
        """
        if self._pump is None or self._pump.done():
            raise SandboxLost(problem="its model port was closed.")
        self._listening = socket.create_server(("127.0.0.1", 0))
        return self._listening

    async def close(self) -> None:
        tasks = [task for task in (self._pump, *self._answers.values()) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        await self._command.close()

    async def _run(self) -> None:
        with suppress(EOFError, SandboxLost):
            while True:
                number, content = await self._frame()
                if content:
                    await self._pass(number, content)
                elif writer := self._writers.pop(number, None):
                    writer.close()

    async def _pass(self, number: int, content: bytes) -> None:
        try:
            writer = self._writers.get(number) or await self._connect(number)
            writer.write(content)
            await writer.drain()
        except OSError:
            self._writers.pop(number, None)
            await self._send(number, b"")

    async def _connect(self, number: int) -> asyncio.StreamWriter:
        # The number of a socket that is closed may be another program's by now.
        if self._listening is None or self._listening.fileno() < 0:
            raise ConnectionRefusedError
        reader, writer = await asyncio.open_connection(*self._listening.getsockname())
        self._writers[number] = writer
        answer = asyncio.create_task(self._answer(number, reader), name="relay an answer")
        self._answers[number] = answer
        answer.add_done_callback(lambda _: self._answers.pop(number, None))
        return writer

    async def _answer(self, number: int, reader: asyncio.StreamReader) -> None:
        with suppress(SandboxLost):
            with suppress(OSError):
                while content := await reader.read(_READ_BYTES):
                    await self._send(number, content)
            await self._send(number, b"")

    async def _send(self, number: int, content: bytes) -> None:
        await self._command.write(_HEADER.pack(number, len(content)) + content)

    async def _frame(self) -> tuple[int, bytes]:
        """Raises EOFError at the end, and where it is not a frame of the relay."""
        await self._fill(_HEADER.size)
        number, length = _HEADER.unpack_from(self._buffer)
        if length > _MAX_FRAME_BYTES:
            raise EOFError
        await self._fill(_HEADER.size + length)
        content = bytes(self._buffer[_HEADER.size : _HEADER.size + length])
        del self._buffer[: _HEADER.size + length]
        return number, content

    async def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            part = await self._command.read()
            if part == END:
                raise EOFError
            if not part.is_control:
                self._buffer += part.content
