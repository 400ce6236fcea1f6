"""A pod of a sandbox, and the commands that run in it over WebSockets."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp
from kubernetes_asyncio.client import ApiException, CoreV1Api

from services.common.sandboxes.errors import CommandRefused, SandboxLost
from services.common.sandboxes.sandbox import KILLED
from services.worker.sandboxes.container.first_process import FirstProcess
from services.worker.sandboxes.container.ports import END, Life, Part, StartedCommand
from services.worker.sandboxes.kubernetes.manifests import RELAY, SANDBOX

_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_WRITE_BYTES = 32 * 1024
# A command travels in an address.
_MAX_COMMAND_BYTES = 256 * 1024
_NOT_FOUND = 404


def problem_of(error: ApiException) -> str:
    """The API server's own sentence."""
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(error.body or "")["message"])[:300]
    return str(error.reason or error.status)[:300]


class SocketCommand:
    """One WebSocket of `exec` or `attach`: the first byte of a message names its stream."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self._code: int | None = None

    async def read(self) -> Part:
        while True:
            message = await self._connection.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return END
            stream, content = message.data[0], message.data[1:]
            if stream == _STATUS:
                self._code = exit_code_of(content)
            elif content and stream in (_STDOUT, _STDERR):
                return Part(content, stream == _STDERR)

    async def write(self, content: bytes) -> None:
        with suppress(OSError, aiohttp.ClientError):
            for start in range(0, len(content), _WRITE_BYTES):
                await self._connection.send_bytes(bytes((_STDIN,)) + content[start : start + _WRITE_BYTES])

    async def exit_code(self) -> int | None:
        if self._code is None and self._connection.closed:
            raise SandboxLost(problem="the connection to the pod ended.")
        return self._code

    async def close(self) -> None:
        with suppress(OSError, aiohttp.ClientError):
            await self._connection.close()


def exit_code_of(status: bytes) -> int:
    """A status of another kind than an exit code is the end of a container."""
    try:
        shown = json.loads(status)
        if shown["status"] == "Success":
            return 0
        causes = shown["details"]["causes"]
        return next(int(each["message"]) for each in causes if each["reason"] == "ExitCode")
    except (ValueError, KeyError, TypeError, StopIteration):
        return KILLED


@dataclass(slots=True)
class Pod:
    """`sockets` is the API with WebSockets in the place of requests."""

    api: CoreV1Api
    sockets: CoreV1Api
    namespace: str
    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    first: FirstProcess | None = None
    relays: list[StartedCommand] = field(default_factory=list)

    async def hold(self) -> None:
        """Attaches to the first process, which ends with the connection. Raises SandboxNotOpened."""
        self.first = FirstProcess(await self._attach(SANDBOX))
        await self.first.wait_started()

    async def execute(self, argv: Sequence[str], *, has_input: bool) -> StartedCommand:
        if sum(len(part.encode()) for part in argv) > _MAX_COMMAND_BYTES:
            raise CommandRefused(problem="its arguments and variables are too long; use standard input.")
        try:
            waiting = await self.sockets.connect_get_namespaced_pod_exec(
                self.name,
                self.namespace,
                command=list(argv),  # type: ignore[arg-type]  # its types know one word
                container=SANDBOX,
                stdin=has_input,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
            )
            return SocketCommand(await waiting)  # type: ignore[misc]  # its types know no WebSocket
        except (aiohttp.ClientError, OSError) as error:
            raise _lost(error) from error

    async def kill_processes(self) -> None:
        assert self.first is not None
        await self.first.kill_others()

    async def life(self) -> Life:
        try:
            shown = await self.api.read_namespaced_pod(self.name, self.namespace)
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return Life.ENDED
            raise SandboxLost(problem=problem_of(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _lost(error) from error
        is_ending = shown.metadata.deletion_timestamp is not None
        if shown.status.phase == "Running" and not is_ending:
            return Life.RUNNING
        # Since version 1.28 all processes of a container end with the one that took too much.
        ends = {
            getattr(each.state.terminated, "reason", "") for each in shown.status.container_statuses or ()
        }
        return Life.OUT_OF_MEMORY if "OOMKilled" in ends else Life.ENDED

    async def relay(self) -> StartedCommand:
        if self.relays:
            raise CommandRefused(problem="a pod has one model port, which is open already.")
        relay = await self._attach(RELAY)
        self.relays.append(relay)
        return relay

    async def remove(self) -> None:
        for relay in self.relays:
            await relay.close()
        if self.first is not None:
            await self.first.close()
        await delete(self.api, self.namespace, self.name)

    async def _attach(self, container: str) -> StartedCommand:
        try:
            waiting = await self.sockets.connect_get_namespaced_pod_attach(
                self.name,
                self.namespace,
                container=container,
                stdin=True,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
            )
            return SocketCommand(await waiting)  # type: ignore[misc]  # its types know no WebSocket
        except (aiohttp.ClientError, OSError) as error:
            raise _lost(error) from error


async def delete(api: CoreV1Api, namespace: str, name: str) -> bool:
    """Whether there was one to delete. Never raises."""
    try:
        await api.delete_namespaced_pod(name, namespace, grace_period_seconds=0)
    except (ApiException, aiohttp.ClientError, OSError):
        return False
    return True


def _lost(error: Exception) -> SandboxLost:
    if isinstance(error, aiohttp.WSServerHandshakeError):
        return SandboxLost(problem=f"the API server refuses to run a command in the pod ({error.status}).")
    return SandboxLost(problem=f"the API server does not answer ({type(error).__name__}).")
