"""Modal's cloud for tests: the part of its package that the engine uses, with podman for its machines.

As there, commands start as root, streams do not end with the client, an argument list has 64 KiB, and either
output of a command may come late.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar, cast

import modal
from aiodocker import Docker
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError
from aiodocker.execs import Exec
from aiodocker.stream import Stream
from aiohttp import ClientError, UnixConnector

from services.worker.sandboxes.modal.engine import ModalClient

_STDERR = 2
_MIB = 1024**2
_MAX_ARGUMENTS = 64 * 1024
# A bomb must not reach the machine of the tests: Modal has no such limit.
_PROCESSES = 256
_ULIMITS = {"nofile": 4096, "nproc": 4096, "core": 0}

P = ParamSpec("P")
T = TypeVar("T")


class Call(Generic[P, T]):
    """A call of Modal's package, of which the asynchronous form is an attribute."""

    def __init__(self, aio: Callable[P, T]) -> None:
        self.aio = aio


@dataclass
class Faults:
    """Faults of the streams of commands: how late an output comes, and what their calls raise."""

    late_seconds: float = 0.0
    output: Exception | None = None
    input: Exception | None = None


class Reader:
    """One stream of a command. None is its end. The cloud keeps what is not read yet."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.parts: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._faults.output:
            raise self._faults.output
        await asyncio.sleep(self._faults.late_seconds)
        while (part := await self.parts.get()) is not None:
            yield part


class Writer:
    def __init__(self, stream: Stream, faults: Faults) -> None:
        self._stream, self._faults = stream, faults
        self._buffer = bytearray()
        self.drain = Call(self._drain)

    def write(self, content: bytes) -> None:
        self._buffer += content

    async def _drain(self) -> None:
        if self._faults.input:
            raise self._faults.input
        sent = bytes(self._buffer)
        with suppress(DockerError, ClientError, OSError, RuntimeError, AssertionError):
            await self._stream.write_in(sent)
        # What is written meanwhile is lost, as in Modal's own.
        self._buffer.clear()


class Process:
    def __init__(self, started: Exec, stream: Stream, faults: Faults) -> None:
        self._started, self._stream = started, stream
        self.stdout, self.stderr, self.stdin = Reader(faults), Reader(Faults()), Writer(stream, faults)
        self.poll, self.wait = Call(self._poll), Call(self._wait)
        self.demultiplexing = asyncio.create_task(self._demultiplex())

    async def _demultiplex(self) -> None:
        try:
            with suppress(DockerError, ClientError, OSError, RuntimeError):
                while message := await self._stream.read_out():
                    await (self.stderr if message.stream == _STDERR else self.stdout).parts.put(message.data)
        finally:
            with suppress(OSError, AssertionError):
                await self._stream.close()
        for reader in (self.stdout, self.stderr):
            await reader.parts.put(None)

    async def _poll(self) -> int | None:
        try:
            shown = await self._started.inspect()
        except DockerError as error:
            raise modal.exception.NotFoundError("the sandbox is gone") from error
        return None if shown["Running"] else int(shown["ExitCode"])

    async def _wait(self) -> int:
        await self.demultiplexing
        code = await self._poll()
        return 137 if code is None else code


@dataclass
class Sandbox:
    container: DockerContainer
    stream: Stream
    tags: dict[str, str]
    order: dict[str, Any]
    processes: list[Process] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    is_attached: bool = True

    def __post_init__(self) -> None:
        self.stdin = Writer(self.stream, Faults())
        self.exec, self.poll = Call(self._exec), Call(self._poll)
        self.get_tags, self.terminate, self.detach = (
            Call(self._get_tags),
            Call(self._terminate),
            Call(self._detach),
        )

    async def _exec(self, *args: str, text: bool) -> Process:
        assert not text
        self._check(args)
        try:
            made = await self.container.exec(list(args), stdin=True, tty=False)
            stream = made.start(detach=False)
            await stream.__aenter__()
        except DockerError as error:
            raise modal.exception.NotFoundError(error.message) from error
        self.processes.append(Process(made, stream, self.faults))
        return self.processes[-1]

    def _check(self, args: tuple[str, ...]) -> None:
        if not self.is_attached:
            raise modal.exception.ClientClosed("Unable to perform operation on a detached sandbox")
        if sum(map(len, args)) > _MAX_ARGUMENTS:
            raise modal.exception.InvalidError("Total length of CMD arguments cannot exceed 65536 bytes")

    async def is_running(self) -> bool:
        with suppress(DockerError):
            return bool((await self.container.show())["State"]["Running"])
        return False

    async def _poll(self) -> int | None:
        self._check(())
        return None if await self.is_running() else 137

    async def _get_tags(self) -> dict[str, str]:
        return self.tags

    async def _terminate(self) -> None:
        with suppress(DockerError):
            await self.container.delete(force=True, v=True)

    async def _detach(self) -> None:
        self.is_attached = False


class ModalCloud:
    """A `problem` is raised by the first call. `network` is that of sandboxes whose network is blocked."""

    def __init__(self, podman_socket: str) -> None:
        # Where podman is asked for its version, it asks the package manager for those of its programs.
        connector = UnixConnector(podman_socket, limit=0)
        self._docker = Docker(url="unix://localhost", connector=connector, api_version="v1.41")
        self.sandboxes: list[Sandbox] = []
        self.problem: Exception | None = None
        self.network = "none"

    @property
    def client(self) -> ModalClient:
        """Its calls have the names and the parameters of the package's."""
        return ModalClient(
            apps=cast("type[modal.App]", self),
            images=cast("type[modal.Image]", self),
            sandboxes=cast("type[modal.Sandbox]", self),
        )

    async def close(self) -> None:
        for sandbox in self.sandboxes:
            await sandbox.terminate.aio()
            await sandbox.stream.close()
            tasks = [process.demultiplexing for process in sandbox.processes]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._docker.close()
        await self._docker.connector.close()

    @property
    def lookup(self) -> Call[..., Awaitable["ModalCloud"]]:
        async def lookup(name: str, *, create_if_missing: bool = False) -> "ModalCloud":
            if self.problem:
                raise self.problem
            assert name
            assert create_if_missing
            return self

        return Call(lookup)

    app_id = "ap-1"

    def from_registry(self, tag: str) -> str:
        return tag

    @property
    def create(self) -> Call[..., Awaitable[Sandbox]]:
        return Call(self._create)

    @property
    def list(self) -> Call[..., AsyncIterator[Sandbox]]:
        return Call(self._list)

    async def _create(self, *args: str, **order: Any) -> Sandbox:
        config = {
            "Image": order["image"],
            "Entrypoint": list(args),
            "User": "0:0",
            "WorkingDir": order["workdir"],
            "OpenStdin": True,
            "StdinOnce": False,
            "HostConfig": {
                "NetworkMode": self.network if order["block_network"] else "host",
                "Memory": order["memory"][1] * _MIB,
                "MemorySwap": order["memory"][1] * _MIB,
                "NanoCpus": int(order["cpu"][1] * 1e9),
                "PidsLimit": _PROCESSES,
                "Ulimits": [{"Name": name, "Soft": most, "Hard": most} for name, most in _ULIMITS.items()],
            },
        }
        try:
            container = await self._docker.containers.create(config)
        except DockerError as error:
            raise modal.exception.RemoteError(f"Image build failed: {error.message}") from error
        stream = container.attach(stdin=True, stdout=True, stderr=True)
        await stream.__aenter__()
        await container.start()
        self.sandboxes.append(Sandbox(container, stream, order["tags"], order))
        return self.sandboxes[-1]

    async def _list(self, *, app_id: str, tags: dict[str, str]) -> AsyncIterator[Sandbox]:
        assert app_id == self.app_id
        for sandbox in self.sandboxes:
            if tags.items() <= sandbox.tags.items() and await sandbox.is_running():
                yield sandbox


@asynccontextmanager
async def fake_cloud(podman_socket: str) -> AsyncIterator[ModalCloud]:
    cloud = ModalCloud(podman_socket)
    try:
        yield cloud
    finally:
        await cloud.close()
