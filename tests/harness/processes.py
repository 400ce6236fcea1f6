"""Processes that a test starts: each dies with the process of the test, however that ends."""

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen, TimeoutExpired
from typing import AnyStr

from proctor.stack.supervision.process import Program, kill_group

END_SECONDS = 10.0


def bound(*command: str) -> tuple[str, ...]:
    """The command, launched so that the kernel kills it when the process that started it is gone."""
    return Program(command).launch_line()


async def end(process: Process, seconds: float = END_SECONDS) -> None:
    """Asks it to end, then kills it."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await process.wait()
            return
    process.kill()
    async with asyncio.timeout(seconds):
        await process.wait()


async def output_of(process: Process, seconds: float) -> tuple[bytes, bytes]:
    """What it writes to its pipes until it ends. It is killed where it does not end in time."""
    try:
        async with asyncio.timeout(seconds):
            return await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            async with asyncio.timeout(END_SECONDS):
                await process.wait()


@contextmanager
def killed_at_the_end(process: Popen[AnyStr], *, group: bool = False) -> Iterator[Popen[AnyStr]]:
    """Also where the test fails. `group`: with what it started, where it leads a session of its own."""
    try:
        yield process
    finally:
        if group:
            kill_group(process.pid)
        process.kill()
        # What it started may still hold its pipes: they are closed, not read to their end.
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(TimeoutExpired):
            process.wait(END_SECONDS)
