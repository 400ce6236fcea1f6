"""Executes the code of a task in a sandbox of processes: lines go in and out through pipes."""

import asyncio
import os
import select
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import BoundedSemaphore, Thread

from services.common.postgres import storable
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.errors import SandboxError
from services.common.sandboxes.sandbox import Command, CommandResult, Ended, SandboxLimits, SandboxSpec
from services.common.sandboxes.task_code.inside import program
from services.common.sandboxes.task_code.ports import CodeEnded, CodeFiles
from services.common.threads.cancellable_threads import check_cancelled

_GIB = 1024**3
# The places inside.
_TASK, _FILES, _PACKAGES = "/task", "/task/files", "/packages"
_SCRATCH = "/tmp"  # noqa: S108  # inside
_START = (
    f"import sys; sys.path[:0] = [{_TASK!r}, {_PACKAGES!r}]; "
    f"from {program.__name__} import main; main({_FILES!r}, {_SCRATCH!r})"
)
# What has no place waits for one.
_AT_A_TIME = 4
# Above what a run may take.
_LIFETIME_SECONDS = 24 * 3600.0
_READ_BYTES = 1024 * 1024
_SENT_BYTES = 64 * 1024
_POLL_SECONDS = 0.1
_KEPT_ERRORS = 2000


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """Of one call. `seconds` are those in which the code computes or waits; the caller's own do not count."""

    seconds: float = 300.0
    memory_bytes: int = 2 * _GIB
    output_bytes: int = 2 * _GIB
    line_bytes: int = 16 * 1024**2
    processes: int = 16


class BubblewrapCode:
    """`packages`: a folder as `pip install --target` makes it, which all tasks may import from.

    Sandboxes are made by an event loop of its own, so that threads can wait for them.
    """

    def __init__(
        self, engine: BubblewrapEngine, packages: Path | None = None, limits: CodeLimits | None = None
    ) -> None:
        self._engine = engine
        self._packages = packages
        self._limits = limits or CodeLimits()
        self._places = BoundedSemaphore(_AT_A_TIME)
        # Code that holds a place of these waits for one of the others, and none of those for one of these.
        self._outer_places = BoundedSemaphore(_AT_A_TIME)

    def lines(
        self, files: CodeFiles, given: Iterator[bytes], *, takes_lines_of_code: bool = False
    ) -> Generator[bytes, None, None]:
        places = self._outer_places if takes_lines_of_code else self._places
        while not places.acquire(timeout=_POLL_SECONDS):
            check_cancelled()
        with ExitStack() as opened:
            opened.callback(places.release)
            into, out, errors = (os.pipe() for _ in range(3))
            pipes = _Pipes(into[1], out[0], errors[0], given, self._limits)
            opened.callback(pipes.close)
            ends = (into[0], out[1], errors[1])
            running = asyncio.run_coroutine_threadsafe(self._run(files, ends), self._loop)
            opened.callback(running.cancel)
            yield from _Exchange(pipes, running, self._limits).lines()

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        Thread(target=loop.run_forever, name="sandboxes of task code", daemon=True).start()
        return loop

    async def _run(self, files: CodeFiles, ends: tuple[int, int, int]) -> CommandResult:
        """Opens a sandbox, executes the program in it and closes it, and what it was given."""
        folder = Path(tempfile.mkdtemp(prefix="proctor-task-code-"))
        try:
            await asyncio.to_thread(_unpack, folder, files)
            sandbox = await self._engine.open(self._spec(folder))
            try:
                command = Command(
                    ("python3", "-s", "-B", "-c", _START),
                    env={"PYTHONHASHSEED": "0"},
                    timeout_seconds=_LIFETIME_SECONDS,
                )
                return await sandbox.run_between(command, ends)
            finally:
                await sandbox.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            for end in ends:
                os.close(end)

    def _spec(self, folder: Path) -> SandboxSpec:
        limits = SandboxLimits(memory_bytes=self._limits.memory_bytes, processes=self._limits.processes)
        packages = ((str(self._packages), _PACKAGES),) if self._packages else ()
        return SandboxSpec(
            limits=limits,
            lifetime_seconds=_LIFETIME_SECONDS,
            shown=((str(folder), _TASK), *packages),
            is_read_only=True,
        )


# What is made of some hundred answers is held at once, and a text that a filter leaves is stored.
LIMITS_OF_ANSWERS = CodeLimits(output_bytes=256 * 1024**2, line_bytes=4 * 1024**2)


def make_code_runner(
    setting: str, packages: Path | None, limits: CodeLimits | None = None
) -> BubblewrapCode | None:
    """None where the operator's setting is "off"."""
    if setting == "off":
        return None
    engine = BubblewrapEngine(program=find_bubblewrap())
    return BubblewrapCode(engine=engine, packages=packages, limits=limits)


def _unpack(folder: Path, code: CodeFiles) -> None:
    """The program and the files of the task. Sandboxes, of users of their own, read them."""
    folder.chmod(0o755)
    own = Path(program.__file__).parent
    within = "/".join(program.__name__.split(".")[:-1])
    programs = {f"{within}/{file.name}": file.read_bytes() for file in own.glob("*.py")}
    files = {f"files/{path}": content for path, content in code.items()}
    for path, content in {**programs, **files}.items():
        file = folder / path
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o644)


@dataclass
class _Pipes:
    """Our ends of the pipes of a program. `waiting` is what its standard input has not taken yet."""

    into: int
    out: int
    errors: int
    given: Iterator[bytes]
    limits: CodeLimits
    waiting: bytes = b""
    read_bytes: int = 0
    last_errors: bytes = b""
    _open: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._open = {self.into, self.out, self.errors}
        for file in self._open:
            os.set_blocking(file, False)

    def close(self) -> None:
        for file in self._open:
            os.close(file)
        self._open.clear()

    def is_ready(self) -> list[int]:
        poll = select.poll()
        for file in self._open:
            poll.register(file, select.POLLOUT if file == self.into else select.POLLIN)
        return [file for file, _ in poll.poll(_POLL_SECONDS * 1000)]

    def send(self) -> None:
        try:
            sent = os.write(self.into, self.waiting) if self.waiting else 0
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._end_input()
            return
        self.waiting = self.waiting[sent:]

    def refill(self) -> None:
        """Takes lines of the source, which may wait for a hub."""
        if self.into in self._open and not self.waiting:
            parts: list[bytes] = []
            size = 0
            for line in self.given:
                parts.append(line)
                size += len(line)
                if size >= _SENT_BYTES:
                    break
            self.waiting = b"".join(parts)
            if not parts:
                self._end_input()

    def read(self, file: int) -> bytes:
        try:
            part = os.read(file, _READ_BYTES)
        except BlockingIOError:
            return b""
        self.read_bytes += len(part)
        if not part:
            self._open.discard(file)
            os.close(file)
        return part

    def _end_input(self) -> None:
        self.waiting = b""
        self._open.discard(self.into)
        os.close(self.into)


@dataclass
class _Exchange:
    pipes: _Pipes
    running: "Future[CommandResult]"
    limits: CodeLimits
    _spent: float = 0.0
    _begun: bytes = b""

    def lines(self) -> Iterator[bytes]:
        while True:
            check_cancelled()
            self.pipes.refill()
            since = time.monotonic()
            lines, has_read = self._step()
            self._spent += time.monotonic() - since
            yield from lines
            if not has_read and self.running.done():
                raise self._ended()
            self._check_limits()

    def _step(self) -> tuple[list[bytes], bool]:
        """Full lines that were read, and whether anything was."""
        lines: list[bytes] = []
        has_read = False
        for file in self.pipes.is_ready():
            if file == self.pipes.into:
                self.pipes.send()
                continue
            part = self.pipes.read(file)
            has_read = has_read or bool(part)
            if file == self.pipes.errors:
                self.pipes.last_errors = (self.pipes.last_errors + part)[-_KEPT_ERRORS:]
                continue
            *full, self._begun = (self._begun + part).split(b"\n")
            lines += full
        return lines, has_read

    def _check_limits(self) -> None:
        limits = self.limits
        if self._spent > limits.seconds:
            raise CodeEnded(f"took more than {limits.seconds:g} s")
        if self.pipes.read_bytes > limits.output_bytes:
            raise CodeEnded(f"wrote more than {limits.output_bytes // 1024**2:,} MiB")
        if len(self._begun) > limits.line_bytes:
            raise CodeEnded(f"wrote a line of more than {limits.line_bytes // 1024**2} MiB")

    def _ended(self) -> CodeEnded:
        """Why the program ended without its last line."""
        try:
            result = self.running.result()
        except SandboxError as error:
            return CodeEnded(f"cannot be executed here: {str(error).rstrip('.')}")
        if result.ended is Ended.OUT_OF_MEMORY:
            return CodeEnded(f"used more than {self.limits.memory_bytes // 1024**2:,} MiB of memory")
        said = storable(self.pipes.last_errors.decode("utf-8", "replace")).strip().splitlines()
        why = f": {said[-1][-300:]}" if said else ""
        return CodeEnded(f"ended with exit code {result.exit_code} before its last line{why}")
