"""One process of the stack: started through `launch`, logged to a file, stopped with its group."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

# With one older copy each, eight children take at most some 320 MB.
ROTATE_ABOVE_BYTES = 20 * 1024 * 1024
# A child that logs 1 MB a second goes 30 MB beyond the bound.
POLL_SECONDS = 30.0
# As much of a failure as a terminal shows without scrolling.
TAIL_LINES = 15
TAIL_BYTES = 8192


LAUNCHER = Path(__file__).with_name("launch.py")
# Only a process that hangs in the kernel outlives SIGKILL that long.
KILL_TIMEOUT_SECONDS = 10.0


def open_log(path: Path) -> BinaryIO:
    """A log to append to; one that is made is for our eyes only."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


class ChildLogs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, child_name: str) -> Path:
        return self.folder / f"{child_name}.log"

    def note(self, sentence: str) -> None:
        """Logs a report of the supervisor, which must not stop where its log cannot be written."""
        with contextlib.suppress(OSError), open_log(self.path("stack")) as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {sentence}\n".encode())

    async def keep_small(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for path in self.folder.glob("*.log"):
                with contextlib.suppress(OSError):
                    rotate(path, ROTATE_ABOVE_BYTES)


def rotate(path: Path, above_bytes: int) -> None:
    """Copies and truncates in place: the children keep their descriptors, and append at the new end."""
    if path.stat().st_size <= above_bytes:
        return
    shutil.copy(path, path.with_suffix(".log.1"))
    with path.open("r+b") as file:
        file.truncate(0)


def log_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def log_tail(path: Path, since_byte: int = 0) -> str:
    """The last lines written after `since_byte`: of this start, not of an older one."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(min(since_byte, end), end - TAIL_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-TAIL_LINES:])


@dataclass(frozen=True, slots=True)
class Program:
    """A command and its user; the kernel sends `death_signal` when the supervisor is killed."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    death_signal: signal.Signals = signal.SIGKILL

    def launch_line(self) -> tuple[str, ...]:
        shim = (sys.executable, "-I", "-S", str(LAUNCHER))
        return (*shim, str(os.getpid()), str(int(self.death_signal)), self.user or "-", *self.command)


class RunningProcess(Protocol):
    """A process that was started, as asyncio's."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...

    def send_signal(self, signal: int) -> None: ...


async def spawn(program: Program, log_path: Path) -> Process:
    """Starts it in a session of its own.

    A Ctrl-C reaches the supervisor alone, and the stop keeps its order.
    """
    if threading.current_thread() is not threading.main_thread():
        # The death signal comes when the *thread* that forked ends, not the process.
        raise RuntimeError("children of the stack are started from the main thread only")
    with open_log(log_path) as log:
        return await asyncio.create_subprocess_exec(
            *program.launch_line(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(program.environment),
            start_new_session=True,
        )


async def terminate(process: RunningProcess, stop_signal: signal.Signals, timeout_seconds: float) -> bool:
    """Asks, then kills; either way nothing of the group is left. True when asking was enough."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(stop_signal)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), timeout_seconds)
    was_enough = process.returncode is not None
    # Also after an orderly end: what the child had started may live on in its group.
    kill_group(process.pid)
    await asyncio.wait_for(process.wait(), KILL_TIMEOUT_SECONDS)
    return was_enough


def kill_group(leader_pid: int) -> None:
    """Whatever the child started and left behind (an engine core, say) is in the group that bears its pid."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader_pid, signal.SIGKILL)
