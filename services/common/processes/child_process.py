"""Processes beside a service, with their input and output in pipes."""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from services.common.processes.frames import HEAD_BYTES, MAX_BYTES, head_of, read_head


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A process beside the service: `input` is what it reads, `output` what it writes."""

    process: subprocess.Popen[bytes]
    input: asyncio.StreamWriter
    output: asyncio.StreamReader
    # The transport of `output`. uvloop leaves it open when the process ends.
    reading: asyncio.ReadTransport

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> Self:
        """Not by asyncio: uvloop forks, and a fork of a process with gRPC's threads crashes now and then.

        `subprocess` starts by vfork, which runs no handlers of a fork. Raises OSError.
        """
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=dict(environment))  # noqa: ASYNC220  # brief
        loop = asyncio.get_running_loop()
        output, unused = asyncio.StreamReader(), asyncio.StreamReader()
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), process.stdout
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(unused), process.stdin
        )
        return cls(process, asyncio.StreamWriter(transport, protocol, None, loop), output, reading)

    async def send(self, kind: bytes, *parts: bytes) -> None:
        """Waits while the process is busy. Raises ConnectionError where it has ended.

        uvloop would raise RuntimeError there, and asyncio's own loop nothing.
        """
        for part in (head_of(kind, *parts), *parts):
            if self.input.is_closing():
                raise BrokenPipeError("the process has ended")
            self.input.write(part)
        await self.input.drain()

    async def receive(self, max_bytes: int = MAX_BYTES) -> tuple[bytes, bytes]:
        """Kind and content of the next frame. Raises EOFError where the process has ended."""
        kind, length = read_head(await self.output.readexactly(HEAD_BYTES), max_bytes)
        return kind, await self.output.readexactly(length)

    async def end(self, grace_seconds: float = 0.0) -> None:
        """Kills it if it does not end by itself in this time, and waits until it has ended."""
        if grace_seconds:
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self.process.wait, grace_seconds)
        # Harmless where it has ended: `kill` looks for its exit first.
        self.process.kill()
        await asyncio.to_thread(self.process.wait)
        self.input.close()
        self.reading.close()
