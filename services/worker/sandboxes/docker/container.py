"""One container of a Docker-compatible engine, and the commands that run in it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import aiohttp
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError
from aiodocker.execs import Exec
from aiodocker.stream import Stream

from services.common.sandboxes.errors import SandboxLost
from services.worker.sandboxes.container.first_process import FirstProcess
from services.worker.sandboxes.container.ports import END, Life, Part, StartedCommand

_GONE = (404, 409)
_STDERR = 2
# The library gives a removal no end of its own.
_REMOVE_SECONDS = 120.0
# An engine that refuses, is away or hangs; a TimeoutError is an OSError.
ENGINE_ERRORS = (DockerError, aiohttp.ClientError, OSError)


def lost(error: Exception) -> SandboxLost:
    """The loss of a sandbox by one of ENGINE_ERRORS."""
    if isinstance(error, DockerError):
        return SandboxLost(problem=f"the container engine answers: {error.message.strip()[:300]}")
    return SandboxLost(problem=f"the container engine does not answer ({type(error).__name__}).")


class StreamCommand:
    """The streams of a command, or of a container's first process, which has no exit code."""

    def __init__(self, stream: Stream, started: Exec | None = None) -> None:
        self._stream = stream
        self._exec = started

    async def read(self) -> Part:
        try:
            message = await self._stream.read_out()
        except DockerError as error:
            raise lost(error) from error
        except (aiohttp.ClientError, OSError) as error:
            raise SandboxLost(problem="the connection to the container engine ended.") from error
        return Part(message.data, message.stream == _STDERR) if message else END

    async def write(self, content: bytes) -> None:
        # The library asserts that the connection is there; a command may have ended before it read all.
        with suppress(*ENGINE_ERRORS, RuntimeError, AssertionError):
            await self._stream.write_in(content)

    async def exit_code(self) -> int | None:
        if self._exec is None:
            return None
        try:
            shown = await self._exec.inspect()
        except ENGINE_ERRORS as error:
            raise lost(error) from error
        return None if shown["Running"] else int(shown["ExitCode"])

    async def close(self) -> None:
        with suppress(*ENGINE_ERRORS, RuntimeError, AssertionError):
            await self._stream.close()


class FailedStart:
    """A command that the engine did not start, in a container that has no room for a process."""

    def __init__(self, message: bytes) -> None:
        self._message = message

    async def read(self) -> Part:
        message, self._message = self._message, b""
        return Part(message, is_control=True) if message else END

    async def write(self, content: bytes) -> None:
        """Nothing reads it."""

    async def exit_code(self) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class EngineRelay:
    container: DockerContainer
    connection: StreamCommand


@dataclass(frozen=True, slots=True)
class EngineContainer:
    container: DockerContainer
    first: FirstProcess
    environment: Mapping[str, str]
    start_relay: Callable[[str], Awaitable["EngineRelay"]]
    relays: list["EngineRelay"]

    async def open_folders(self, folders: Sequence[str]) -> None:
        """Lets all users write there: a folder that the image has too keeps its mode. Raises SandboxLost.

        The owner of a folder needs no capability to change its mode.
        """
        try:
            made = await self.container.exec(["chmod", "1777", *folders], user="0", tty=False)
            async with made.start(detach=False) as stream:
                message = await stream.read_out()
        except ENGINE_ERRORS as error:
            raise lost(error) from error
        if message is not None:
            shown = message.data.decode("utf-8", "replace").strip()[:200]
            raise SandboxLost(problem=f"its folders cannot be made writable ({shown}).")

    async def execute(self, argv: Sequence[str], *, has_input: bool) -> StartedCommand:
        try:
            made = await self.container.exec(list(argv), stdin=has_input, tty=False)
        except ENGINE_ERRORS as error:
            raise lost(error) from error
        stream = made.start(detach=False)
        try:
            await stream.__aenter__()
        except DockerError as error:
            if error.status in _GONE:
                raise lost(error) from error
            return FailedStart(error.message.encode())
        except (aiohttp.ClientError, OSError) as error:
            raise lost(error) from error
        return StreamCommand(stream, made)

    async def kill_processes(self) -> None:
        await self.first.kill_others()

    async def life(self) -> Life:
        try:
            shown = await self.container.show()
        except ENGINE_ERRORS as error:
            if isinstance(error, DockerError) and error.status in _GONE:
                return Life.ENDED
            raise lost(error) from error
        state = shown["State"]
        if state["Running"]:
            return Life.RUNNING
        return Life.OUT_OF_MEMORY if state.get("OOMKilled") else Life.ENDED

    async def relay(self) -> StartedCommand:
        relay = await self.start_relay(self.container.id)
        self.relays.append(relay)
        return relay.connection

    async def remove(self) -> None:
        for relay in self.relays:
            await relay.connection.close()
            await delete(relay.container)
        await self.first.close()
        await delete(self.container)


async def delete(container: DockerContainer) -> None:
    """Never raises: it removes itself too, since its first process ends with the connection."""
    with suppress(*ENGINE_ERRORS):
        async with asyncio.timeout(_REMOVE_SECONDS):
            await container.delete(force=True, v=True)
