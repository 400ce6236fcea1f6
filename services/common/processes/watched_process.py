"""A request to a process beside the service: its reply, or the reason why it has none.

A request is limited in CPU time, because on a busy machine every request takes longer.
"""

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from services.common.errors import ProcessLost, RequestUnanswerable
from services.common.processes.bounded_calls import exchange
from services.common.processes.child_process import ChildProcess

# A request cannot cause these. The kernel sends the first where the machine runs out of memory, and the limit
# of a process is below that; people and supervisors send the others.
OUTSIDE_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# CPU seconds in an interval. A process that hangs uses less.
IDLE_CPU_SECONDS = 0.02
# Time to exit for a process that has closed its output.
ENDING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ProcessTimeouts:
    """Every `interval_seconds` without a reply the process is looked at, `intervals` times at most."""

    cpu_seconds: float = 60.0
    interval_seconds: float = 30.0
    intervals: int = 40


def memory_of_machine() -> int:
    """Bytes of the machine, or of the container where that has fewer."""
    limits = [psutil.virtual_memory().total]
    for file in CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(Path(file).read_text(encoding="ascii")))
    return min(limits)


async def ask(process: ChildProcess, request: bytes, timeouts: ProcessTimeouts) -> bytes:
    """The reply to a request. Raises RequestUnanswerable or ProcessLost: the process must be ended."""
    asking = asyncio.create_task(exchange(process, request), name="ask a process")
    try:
        await _until_done(asking, process, timeouts)
        return asking.result()
    except (OSError, EOFError) as error:
        raise await _explained(process) from error
    finally:
        asking.cancel()


async def _until_done(asking: asyncio.Future[Any], process: ChildProcess, timeouts: ProcessTimeouts) -> None:
    await asyncio.wait((asking,), timeout=timeouts.interval_seconds)
    if asking.done():
        return
    try:
        watched = psutil.Process(process.process.pid)
        began = before = _cpu_seconds(watched)
        for _ in range(timeouts.intervals):
            await asyncio.wait((asking,), timeout=timeouts.interval_seconds)
            if asking.done():
                return
            now = _cpu_seconds(watched)
            if now - began > timeouts.cpu_seconds:
                raise RequestUnanswerable(f"it computes for over {timeouts.cpu_seconds:g} s")
            if now - before < IDLE_CPU_SECONDS and watched.status() == psutil.STATUS_SLEEPING:
                raise RequestUnanswerable("it is idle and does not answer")
            before = now
    except psutil.NoSuchProcess:
        raise EOFError from None
    raise ProcessLost("it got no time to compute")


def _cpu_seconds(watched: psutil.Process) -> float:
    times = watched.cpu_times()
    return float(times.user + times.system)


async def _explained(process: ChildProcess) -> RequestUnanswerable | ProcessLost:
    await process.end(ENDING_SECONDS)
    code = process.process.returncode
    if -code in OUTSIDE_SIGNALS:
        return ProcessLost(f"{signal.Signals(-code).name} ended it")
    return RequestUnanswerable(f"it ended with {code}")
