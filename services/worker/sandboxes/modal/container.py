"""A sandbox of Modal, and the commands that run in it."""

import asyncio
from collections.abc import AsyncIterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import modal
from grpclib.exceptions import GRPCError, StreamTerminatedError
from modal.container_process import ContainerProcess

from services.common.sandboxes.errors import CommandRefused, SandboxLost, SandboxNotOpened
from services.common.sandboxes.sandbox import KILLED, SandboxLimits
from services.worker.sandboxes.container.ports import END, Life, Part, StartedCommand
from services.worker.sandboxes.modal.programs import HEARTBEAT, kill, prepare, relay, without_privileges

# Modal refuses, is away or hangs; a TimeoutError is an OSError. Its package raises ValueError for
# answers that it does not expect.
MODAL_ERRORS = (modal.exception.Error, GRPCError, StreamTerminatedError, OSError, ValueError)
# Modal's own limit, with room for the program that gives up privileges.
_MAX_COMMAND_BYTES = 60 * 1024
_START_SECONDS, _END_SECONDS, _ASK_SECONDS = 300.0, 15.0, 30.0
_AGAIN_SECONDS, _NOTICE_SECONDS = 0.25, 3.0
_QUEUED_PARTS = 16


def problem_of(error: Exception) -> str:
    """Modal's answer, or that there is none."""
    text = " ".join(str(error).split())[:300]
    return f"Modal answers: {text}" if text else f"Modal does not answer ({type(error).__name__})."


def lost(error: Exception) -> SandboxLost:
    return SandboxLost(problem=problem_of(error))


class ProcessCommand:
    """Both streams of a command in one. Each has its own order; either may come later than the other."""

    def __init__(self, process: ContainerProcess[bytes]) -> None:
        self._process = process
        self._parts: asyncio.Queue[Part] = asyncio.Queue(_QUEUED_PARTS)
        self._open_streams = 2
        self._writing = asyncio.Lock()
        self._lost: SandboxLost | None = None
        self._reading = [
            asyncio.create_task(self._pump(process.stdout, is_control=False), name="read an output"),
            asyncio.create_task(self._pump(process.stderr, is_control=True), name="read an error output"),
        ]

    async def read(self) -> Part:
        if self._lost:
            raise self._lost
        part = await self._parts.get()
        if self._lost:
            raise self._lost
        if part == END:
            # Later readers find the end too.
            self._parts.put_nowait(END)
        return part

    async def write(self, content: bytes) -> None:
        # The buffer is emptied after a send: bytes that others write meanwhile would be lost.
        async with self._writing:
            try:
                self._process.stdin.write(content)
                await self._process.stdin.drain.aio()
            except Exception as error:  # noqa: BLE001  # a command that waits for the rest would be a time-out
                if not await self._has_ended():
                    self._lose(error)

    async def exit_code(self) -> int | None:
        try:
            code = await self._process.poll.aio()
        except MODAL_ERRORS as error:
            raise lost(error) from error
        return KILLED if code is not None and code < 0 else code

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def finish(self) -> tuple[int, bytes]:
        """Exit code and output of a short command. Raises SandboxLost, and TimeoutError."""
        output = bytearray()
        try:
            while (part := await self.read()) != END:
                output += part.content
            return await self._process.wait.aio(), bytes(output)
        except MODAL_ERRORS as error:
            raise lost(error) from error
        finally:
            await self.close()

    async def _pump(self, stream: AsyncIterable[bytes], *, is_control: bool) -> None:
        try:
            async for content in stream:
                if content:
                    await self._parts.put(Part(content, is_control))
        except Exception as error:  # noqa: BLE001  # a command without its output would be a time-out
            self._lose(error)
        self._open_streams -= 1
        if not self._open_streams:
            await self._parts.put(END)

    def _lose(self, error: Exception) -> None:
        self._lost = self._lost or lost(error)
        # A reader that waits for a part must see it. It waits only while there are no parts.
        with suppress(asyncio.QueueFull):
            self._parts.put_nowait(END)

    async def _has_ended(self) -> bool:
        """Waits a moment: Modal may refuse the input of a command before it reports its end."""
        with suppress(TimeoutError, SandboxLost):
            async with asyncio.timeout(_NOTICE_SECONDS):
                while await self.exit_code() is None:  # noqa: ASYNC110  # Modal has no event for it
                    await asyncio.sleep(_AGAIN_SECONDS)
                return True
        return False


@dataclass(slots=True)
class HostedContainer:
    """`heartbeat_seconds`: time between two heartbeats, which its first process reads."""

    sandbox: modal.Sandbox
    limits: SandboxLimits
    heartbeat_seconds: float
    python: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    relays: list[StartedCommand] = field(default_factory=list)
    sending_heartbeats: asyncio.Task[None] | None = None

    async def hold(self, folders: Sequence[str]) -> None:
        """Waits until it runs, and makes its folders. Raises SandboxNotOpened."""
        self.sending_heartbeats = asyncio.create_task(self._send_heartbeats(), name="hold a sandbox")
        try:
            async with asyncio.timeout(_START_SECONDS):
                code, output = await (await self._start(prepare(folders))).finish()
        except TimeoutError as error:
            raise SandboxNotOpened(problem=f"it did not start in {_START_SECONDS:g} s.") from error
        except SandboxLost as error:
            raise SandboxNotOpened(problem=str(error.facts["problem"])) from error
        shown = output.decode("utf-8", "replace").strip()
        if code:
            problem = (
                f"its image must have a python3 of root's, and folders that can be made ({shown[-200:]})."
            )
            raise SandboxNotOpened(problem=problem)
        self.python = shown

    async def execute(self, argv: Sequence[str], *, has_input: bool) -> StartedCommand:  # noqa: ARG002  # the port
        return await self._start(without_privileges(self.python, argv, self.limits))

    async def kill_processes(self) -> None:
        try:
            async with asyncio.timeout(_END_SECONDS):
                code, _ = await (await self._start(kill(self.python))).finish()
        except TimeoutError as error:
            raise SandboxLost(problem="its processes cannot be ended.") from error
        if code:
            raise SandboxLost(problem=f"its processes cannot be ended (exit code {code}).")

    async def life(self) -> Life:
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                is_running = await self.sandbox.poll.aio() is None
        except MODAL_ERRORS as error:
            raise lost(error) from error
        return Life.RUNNING if is_running else Life.ENDED

    async def relay(self) -> StartedCommand:
        """It is root's: nothing of the sandbox's user can end or imitate it."""
        started = await self._start(relay(self.python))
        self.relays.append(started)
        return started

    async def remove(self) -> None:
        if self.sending_heartbeats:
            self.sending_heartbeats.cancel()
        for each in self.relays:
            await each.close()
        with suppress(*MODAL_ERRORS):
            async with asyncio.timeout(_ASK_SECONDS):
                await self.sandbox.terminate.aio()
                await self.sandbox.detach.aio()  # type: ignore[no-untyped-call]  # it has none

    async def _start(self, argv: Sequence[str]) -> ProcessCommand:
        if sum(len(part.encode()) for part in argv) > _MAX_COMMAND_BYTES:
            raise CommandRefused(problem="its arguments and variables are too long; use standard input.")
        try:
            return ProcessCommand(await self.sandbox.exec.aio(*argv, text=False))
        except MODAL_ERRORS as error:
            raise lost(error) from error

    async def _send_heartbeats(self) -> None:
        while True:
            with suppress(*MODAL_ERRORS):
                async with asyncio.timeout(_ASK_SECONDS):
                    self.sandbox.stdin.write(HEARTBEAT)
                    await self.sandbox.stdin.drain.aio()
            await asyncio.sleep(self.heartbeat_seconds)
