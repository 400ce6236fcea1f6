"""One container of a Docker-compatible engine, and the commands that run in it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import aiohttp
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError
from aiodocker.execs import Exec
from aiodocker.stream import Stream

from services.worker.sandboxes.container.first_process import FirstProcess
from services.worker.sandboxes.container.ports import END, Execution, Part
from services.worker.sandboxes.errors import SandboxLost

_GONE = (404, 409)
_STDERR = 2


def lost(error: DockerError) -> SandboxLost:
    return SandboxLost(problem=f"the container engine answers: {error.message.strip()[:300]}")


class StreamExecution:
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
        with suppress(OSError, RuntimeError, AssertionError):
            await self._stream.write_in(content)

    async def exit_code(self) -> int | None:
        if self._exec is None:
            return None
        try:
            shown = await self._exec.inspect()
        except DockerError as error:
            raise lost(error) from error
        return None if shown["Running"] else int(shown["ExitCode"])

    async def close(self) -> None:
        with suppress(OSError, AssertionError):
            await self._stream.close()


class Complaint:
    """A command that the engine did not start, in a container that has no room for a process."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    async def read(self) -> Part:
        said, self._said = self._said, b""
        return Part(said, is_control=True) if said else END

    async def write(self, content: bytes) -> None:
        """Nothing reads it."""

    async def exit_code(self) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class EngineRelay:
    container: DockerContainer
    connection: StreamExecution


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
                said = await stream.read_out()
        except DockerError as error:
            raise lost(error) from error
        if said is not None:
            shown = said.data.decode("utf-8", "replace").strip()[:200]
            raise SandboxLost(problem=f"its folders cannot be made writable ({shown}).")

    async def execute(self, argv: Sequence[str], *, has_input: bool) -> Execution:
        try:
            made = await self.container.exec(list(argv), stdin=has_input, tty=False)
        except DockerError as error:
            raise lost(error) from error
        stream = made.start(detach=False)
        try:
            await stream.__aenter__()
        except DockerError as error:
            if error.status in _GONE:
                raise lost(error) from error
            return Complaint(error.message.encode())
        return StreamExecution(stream, made)

    async def kill_processes(self) -> None:
        await self.first.kill_others()

    async def is_alive(self) -> bool:
        try:
            shown = await self.container.show()
        except DockerError as error:
            if error.status in _GONE:
                return False
            raise lost(error) from error
        return bool(shown["State"]["Running"])

    async def relay(self) -> Execution:
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
    """It removes itself too, since its first process ends with the connection."""
    with suppress(DockerError):
        await container.delete(force=True, v=True)
