"""Ties vLLM's engine process to the worker: if the worker is killed, the kernel kills the engine too.

vLLM starts its engine by multiprocessing's spawn method, which lets one choose the program to start. While
`children_die_with_us` is active that program is this file: it requests the signal, redirects its output to
the worker, and then becomes Python.
"""

import ctypes
import multiprocessing.spawn
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


@contextmanager
def children_die_with_us(output: int) -> Iterator[None]:
    """The signal comes when the starting *thread* ends, so start from one that lives as long as the child.

    `output`: the write end of a pipe for the output of the children.
    """
    previous = os.fsdecode(multiprocessing.spawn.get_executable())
    with tempfile.TemporaryDirectory(prefix="proctor-engine-") as folder:
        launcher = Path(folder) / "python"
        command = shlex.join(
            [previous, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), str(output), previous]
        )
        launcher.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        launcher.chmod(0o700)
        multiprocessing.spawn.set_executable(str(launcher))
        try:
            yield
        finally:
            multiprocessing.spawn.set_executable(previous)


def become_python(parent: int, output: int, command: list[str]) -> None:
    """The resource tracker outlives the worker on purpose: it frees the shared memory."""
    if "--multiprocessing-fork" in command:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the call above took effect.
        if os.getppid() != parent:
            sys.exit("the worker died before its engine started")
        print_to(Path(f"/proc/{parent}/fd/{output}"))
    os.execv(command[0], command)  # noqa: S606  # the command is multiprocessing's own


def print_to(pipe: Path) -> None:
    """Spawned processes do not inherit the pipe, but may open it while the worker holds it."""
    with suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)


if __name__ == "__main__":
    become_python(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
