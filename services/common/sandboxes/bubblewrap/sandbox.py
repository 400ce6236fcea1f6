"""One sandbox of the process engine."""

import asyncio
import fcntl
import io
import os
import socket
import time
from contextlib import ExitStack
from typing import BinaryIO

from services.common.sandboxes.bubblewrap.launcher_client import LauncherClient, Reply
from services.common.sandboxes.command_files import (
    FILES_SECONDS,
    PACK,
    get_files,
    get_root_files,
    put_files,
)
from services.common.sandboxes.errors import CommandRefused, SandboxLost
from services.common.sandboxes.output import KeptOutput
from services.common.sandboxes.sandbox import (
    DEFAULT_PATH,
    KILLED,
    Command,
    CommandResult,
    Ended,
    Network,
    RootParts,
    SandboxSpec,
    TarLimits,
)

# What a pipe of Linux holds by default.
_READ_BYTES = 65536
# The most that an unprivileged process can make a pipe hold (fs/pipe-max-size).
_PIPE_BYTES = 1024 * 1024
# On a busy machine a killed process takes a moment to end.
_KILL_AGAIN_SECONDS = 2.0
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class PipeReader:
    """The reading end of a pipe, until `stop`: background processes may hold the pipe open."""

    def __init__(self, file: int, kept: KeptOutput) -> None:
        os.set_blocking(file, False)
        self._file, self._kept = file, kept
        self._loop = asyncio.get_running_loop()
        self._is_ended = False
        self._loop.add_reader(file, self._read)

    def stop(self) -> None:
        """Takes what is there already: at most what fits in a pipe, since one may write on and on."""
        for _ in range(_PIPE_BYTES // _READ_BYTES):
            if self._is_ended or not self._read():
                break
        self._end()

    def _read(self) -> bool:
        try:
            part = os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return False
        if not part:
            self._end()
            return False
        self._kept.add(part)
        return True

    def _end(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._loop.remove_reader(self._file)
            os.close(self._file)


class BubblewrapSandbox:
    def __init__(self, launcher: LauncherClient, box: int, spec: SandboxSpec) -> None:
        self._launcher = launcher
        self._box = box
        self._spec = spec
        self._is_closed = False

    async def run(self, command: Command) -> CommandResult:
        return await self.run_into(command, KeptOutput(command.output_bytes))

    async def run_into(self, command: Command, kept: KeptOutput, *, is_pack: bool = False) -> CommandResult:
        """`is_pack`: the output is a tar of the folder `cwd` itself; the words of tar are dropped."""
        started = time.monotonic()
        with ExitStack() as opened:
            stdin = _sealed(command.stdin)
            opened.callback(os.close, stdin)
            reading, writing = os.pipe()
            reader = PipeReader(reading, kept)
            opened.callback(reader.stop)
            opened.callback(os.close, writing)
            errors = writing
            if is_pack:
                errors = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
                opened.callback(os.close, errors)
            reply, is_timed_out = await self._start(command, (stdin, writing, errors), is_pack=is_pack)
        ended = _ended(reply, is_timed_out=is_timed_out)
        return CommandResult(
            exit_code=reply["exit"],
            head=bytes(kept.head),
            tail=kept.tail,
            total_bytes=kept.total,
            ended=ended,
            seconds=time.monotonic() - started,
            uses=reply["uses"] if reply["uses"] >= 0 else None,
        )

    async def put(self, path: str, tar: bytes) -> None:
        await put_files(self, path, tar, is_there=path in (self._spec.workdir, *self._spec.writable))

    async def get(self, path: str, into: BinaryIO, limits: TarLimits) -> None:
        async def quick(kept: KeptOutput) -> CommandResult:
            command = Command(PACK, path, timeout_seconds=FILES_SECONDS)
            return await self.run_into(command, kept, is_pack=True)

        await get_files(self, path, into, limits, quick)

    @property
    def has_root(self) -> bool:
        return bool(self._spec.plain)

    async def get_root(self, into: BinaryIO, limits: TarLimits, parts: RootParts) -> None:
        if self.has_root:
            spec = self._spec
            made = (each for each in spec.writable if each not in spec.plain)
            mounts = (spec.workdir, *made, *(inside for _, inside in spec.shown))
            await get_root_files(self, into, limits, parts, mounts)

    async def stop_processes(self) -> None:
        await self._ask({"do": "kill"})

    async def model_port(self, port: int) -> socket.socket:
        if self._spec.network is not Network.MODEL:
            raise CommandRefused(problem="the sandbox was opened without a network.")
        reply, files = await self._launcher.ask({"do": "port", "box": self._box, "port": port})
        _check(reply)
        return socket.socket(fileno=files[0])

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                await self._launcher.ask({"do": "close", "box": self._box})
            except SandboxLost:
                return

    async def _ask(self, request: Reply) -> Reply:
        if self._is_closed:
            raise SandboxLost(problem="it was closed.")
        reply, _ = await self._launcher.ask({**request, "box": self._box})
        _check(reply)
        return reply

    async def run_between(self, command: Command, files: tuple[int, int, int]) -> CommandResult:
        """As `run`, with open files as its standard input, output and error, which stay the caller's.

        None of its output is kept.
        """
        started = time.monotonic()
        reply, is_timed_out = await self._start(command, files)
        ended = _ended(reply, is_timed_out=is_timed_out)
        return CommandResult(reply["exit"], b"", ended=ended, seconds=time.monotonic() - started)

    async def _start(
        self, command: Command, files: tuple[int, int, int], *, is_pack: bool = False
    ) -> tuple[Reply, bool]:
        """The reply, and whether the command's time was over. A caller that gives up ends the command too."""
        if not command.argv or any("\0" in part for part in (*command.argv, *command.env.values())):
            raise CommandRefused(problem="an argument is missing or has a zero byte.")
        request = {
            "do": "run",
            "argv": list(command.argv),
            "cwd": command.cwd or self._spec.workdir,
            "env": {"PATH": DEFAULT_PATH, "HOME": "/home", "LANG": "C.UTF-8", **command.env},
            "box": self._box,
            "needs_folder": is_pack,
            "watched": list(command.watched),
        }
        if self._is_closed:
            raise SandboxLost(problem="it was closed.")
        answer = asyncio.create_task(self._launcher.ask(request, files), name="ask the launcher")
        try:
            done, _ = await asyncio.wait((answer,), timeout=command.timeout_seconds)
            while not answer.done():
                # Again: the command may have been about to start.
                await self.stop_processes()
                await asyncio.wait((answer,), timeout=_KILL_AGAIN_SECONDS)
            reply, _ = answer.result()
        except asyncio.CancelledError:
            # No caller waits for the command any more.
            answer.cancel()
            await asyncio.shield(self.stop_processes())
            raise
        _check(reply)
        return reply, not done


def _sealed(content: bytes) -> int:
    """A file in memory, not to be written by those who get it. Empty input needs none."""
    if not content:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    file = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with io.FileIO(file, "w", closefd=False) as written:
        left = memoryview(content)
        while left:
            left = left[written.write(left) or 0 :]
    os.lseek(file, 0, os.SEEK_SET)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    return file


def _check(reply: Reply) -> None:
    if "lost" in reply:
        raise SandboxLost(problem=reply["lost"])
    if "error" in reply:
        raise SandboxLost(problem=reply["error"])


def _ended(reply: Reply, *, is_timed_out: bool) -> Ended:
    if is_timed_out:
        return Ended.TIMED_OUT
    if reply["excess"] == "files":
        return Ended.OUT_OF_DISK
    if reply["excess"] == "memory" or (reply["exit"] == KILLED and reply["oom_kills"]):
        return Ended.OUT_OF_MEMORY
    return Ended.EXITED
