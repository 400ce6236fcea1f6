"""A sandbox in a container, the same for all engines that have containers."""

import asyncio
import re
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from services.common.sandboxes.command_files import get_files, put_files
from services.common.sandboxes.errors import CommandRefused, SandboxBlocked, SandboxLost
from services.common.sandboxes.output import KeptOutput
from services.common.sandboxes.sandbox import (
    KILLED,
    Command,
    CommandResult,
    Ended,
    Network,
    RootParts,
    SandboxSpec,
    TarLimits,
)
from services.common.structured_logs import get_logger
from services.worker.sandboxes.container.command_output import CommandOutput
from services.worker.sandboxes.container.ports import Container, Life
from services.worker.sandboxes.container.programs import start_of
from services.worker.sandboxes.container.relay import ModelRelay

_NOT_STARTED = 126
# The kernel's limit of one argument.
_MAX_ARGUMENT_BYTES = 128 * 1024 - 1
_MAX_ARGUMENTS_BYTES = 1024 * 1024
_START_SECONDS = 60.0
_KILLS, _KILL_SECONDS = 3, 5.0
_END_SECONDS = 10.0
_AGAIN_SECONDS, _NOTICE_SECONDS = 0.02, 0.25
_OOM_KILLS = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_GROUPS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_CLOSED = "it was closed."
log = get_logger()


class ContainerSandbox:
    """`forget` is called once, when it is closed."""

    def __init__(
        self, container: Container, spec: SandboxSpec, forget: Callable[["ContainerSandbox"], None]
    ) -> None:
        self._container = container
        self._spec = spec
        self._forget = forget
        # Engines start a command by a program of several threads, which count as processes of the sandbox.
        self._starting = asyncio.Lock()
        self._problem = ""
        self._oom_kills = 0
        self._is_out_of_memory = False
        self._relays: dict[int, ModelRelay] = {}
        self._expiring = asyncio.get_running_loop().call_later(spec.lifetime_seconds, self._expire)
        self._expired: asyncio.Task[None] | None = None

    async def run(self, command: Command) -> CommandResult:
        return await self.run_into(command, KeptOutput(command.output_bytes))

    async def run_into(self, command: Command, kept: KeptOutput) -> CommandResult:
        _check(command)
        self._check_open()
        began = time.monotonic()
        try:
            async with self._starting:
                try:
                    output = await self._start(command, kept)
                except SandboxBlocked:
                    # Others may stop each process that starts there.
                    await self._container.kill_processes()
                    output = await self._start(command, kept)
            try:
                if not output.is_started:
                    return await self._refusal(output, time.monotonic() - began)
                is_timed_out = await self._finish(output, command)
                code = await self._exit_code(output)
            finally:
                await output.close()
        except asyncio.CancelledError:
            # No caller waits for the command any more.
            with suppress(SandboxLost):
                await asyncio.shield(self._container.kill_processes())
            raise
        ended = Ended.TIMED_OUT if is_timed_out else await self._ended(code)
        seconds = time.monotonic() - began
        return CommandResult(code, bytes(kept.head), kept.tail, kept.total, ended, seconds)

    async def put(self, path: str, tar: bytes) -> None:
        await put_files(self, path, tar)

    async def get(self, path: str, into: BinaryIO, limits: TarLimits) -> None:
        await get_files(self, path, into, limits)

    @property
    def has_root(self) -> bool:
        return False

    async def get_root(self, into: BinaryIO, limits: TarLimits, parts: RootParts) -> None:
        """Its root is read-only."""

    async def stop_processes(self) -> None:
        self._check_open()
        await self._container.kill_processes()

    async def model_port(self, port: int) -> socket.socket:
        self._check_open()
        if self._spec.network is not Network.MODEL:
            raise CommandRefused(problem="the sandbox was opened without a network.")
        if port not in self._relays:
            relay = self._relays[port] = ModelRelay(await self._container.relay())
            await relay.open(port)
        # The relay stays for the sandbox's life: an engine may have room for one only.
        return self._relays[port].listen()

    async def close(self) -> None:
        self._expiring.cancel()
        self._problem = self._problem or _CLOSED
        self._forget(self)
        try:
            try:
                for relay in self._relays.values():
                    await relay.close()
            finally:
                await self._container.remove()
        except Exception as error:  # noqa: BLE001  # a sandbox that is over must not replace its own result
            log.warning("sandbox not removed", error=repr(error))

    def _expire(self) -> None:
        self._problem = self._problem or "its lifetime is over."
        self._expired = asyncio.create_task(self._container.remove(), name="remove a sandbox at its end")

    def _check_open(self) -> None:
        if self._is_out_of_memory:
            raise SandboxBlocked(problem=self._problem)
        if self._problem:
            raise SandboxLost(problem=self._problem)

    async def _start(self, command: Command, kept: KeptOutput) -> CommandOutput:
        """A command that has started, or has ended without."""
        self._check_open()
        mark = secrets.token_hex(16)
        argv = start_of(command, command.cwd or self._spec.workdir, self._container.environment, mark)
        started = await self._container.execute(argv, has_input=bool(command.stdin))
        output = CommandOutput(started, kept, command.stdin, mark.encode())
        if not await output.is_started_within(_START_SECONDS):
            await output.close()
            raise SandboxBlocked(problem=f"a command did not start within {_START_SECONDS:g} s.")
        return output

    async def _refusal(self, output: CommandOutput, seconds: float) -> CommandResult:
        """The engine's own words, where no process can be made in the container, or the container is gone."""
        await self._check_alive()
        await output.is_ended_within(_END_SECONDS)
        return CommandResult(
            _NOT_STARTED, output.error_output, total_bytes=len(output.error_output), seconds=seconds
        )

    async def _finish(self, output: CommandOutput, command: Command) -> bool:
        """Whether its time was over."""
        if await output.is_ended_within(command.timeout_seconds):
            return False
        for _ in range(_KILLS):
            await self._container.kill_processes()
            if await output.is_ended_within(_KILL_SECONDS):
                return True
        self._problem = self._problem or "a command could not be ended."
        await self._container.remove()
        raise SandboxBlocked(problem=self._problem)

    async def _exit_code(self, output: CommandOutput) -> int:
        """Its own report; the engine's where it was killed before it could."""
        self._check_open()
        if output.code is not None:
            return output.code
        try:
            async with asyncio.timeout(_END_SECONDS):
                # The engine is asked: it has no call that waits.
                while (code := await output.command.exit_code()) is None:  # noqa: ASYNC110  # the engine has no event for it
                    await asyncio.sleep(_AGAIN_SECONDS)
        except (TimeoutError, SandboxLost) as error:
            await self._check_alive()
            raise SandboxBlocked(problem="the end of a command is not reported.") from error
        # It was killed before it could report: on request, or with the container, which engines see later.
        await asyncio.sleep(_NOTICE_SECONDS)
        await self._check_alive()
        return code

    async def _check_alive(self) -> None:
        """The sandbox's end also ends its commands, which then say nothing."""
        self._check_open()
        life = await self._container.life()
        if life is Life.OUT_OF_MEMORY:
            self._problem = "its processes took more memory than it may have, and all were ended."
            self._is_out_of_memory = True
        elif life is Life.ENDED:
            self._problem = self._problem or "its first process ended: for memory, or its lifetime."
        self._check_open()

    async def _ended(self, code: int) -> Ended:
        if code != KILLED:
            return Ended.EXITED
        before, self._oom_kills = self._oom_kills, await self._count_oom_kills()
        return Ended.OUT_OF_MEMORY if self._oom_kills > before else Ended.EXITED

    async def _count_oom_kills(self) -> int:
        """Reads the kernel's own counter, of either version of control groups."""
        output = CommandOutput(
            await self._container.execute(("cat", *_GROUPS), has_input=False), KeptOutput(4000)
        )
        await output.is_ended_within(_END_SECONDS)
        await output.close()
        found = _OOM_KILLS.search(bytes(output.kept.head))
        return int(found[1]) if found else self._oom_kills


def _check(command: Command) -> None:
    parts = [*command.argv, *(f"{name}={value}" for name, value in command.env.items())]
    if not command.argv or any("\0" in part for part in parts):
        raise CommandRefused(problem="an argument is missing or has a zero byte.")
    sizes = [len(part.encode()) for part in parts]
    if max(sizes) > _MAX_ARGUMENT_BYTES or sum(sizes) > _MAX_ARGUMENTS_BYTES:
        raise CommandRefused(problem="its arguments and variables are too long; use standard input.")
