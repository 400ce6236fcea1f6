"""Keeps one child of the stack running: starts it, asks until it is ready, starts it again when it dies."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from proctor.stack.errors import ChildFailedToStart
from proctor.stack.state import ChildState
from proctor.stack.supervision import process as child_logs
from proctor.stack.supervision.process import Program, RunningProcess, kill_group, spawn, terminate

# Applies before the first success. One failure may be chance; three in a row are a wrong setting.
GIVE_UP_AFTER_FAILURES = 3
# A service that died by chance is back before its callers give up.
FIRST_BACKOFF_SECONDS = 0.1
# One that keeps dying costs a start every few seconds, and is back soon once mended.
MAX_BACKOFF_SECONDS = 5.0
# The backoff is reset for a child that ran longer than this; one that ends sooner will fail again.
STEADY_AFTER_SECONDS = 20.0
# How often a running child is looked at, and the number of looks in a row that must find its fault.
FAULT_POLL_SECONDS = 5.0
FAULT_LOOKS = 2
# After each restart that mended nothing, twice as many; at most so many, which is some ten minutes.
MAX_FAULT_LOOKS = 128
# Postgres and NATS are up within a tenth of a second: a coarser look would double the start.
FIRST_POLL_SECONDS = 0.02
# vLLM loads for minutes, in which many probes would take CPU from it.
MAX_POLL_SECONDS = 0.25
CANCEL_AGAIN_SECONDS = 1.0

Report = Callable[[str], None]
Probe = Callable[[], Awaitable[bool]]
# Starts a program that writes to the log of this path, in a session of its own. Raises OSError.
StartProgram = Callable[[Program, Path], Awaitable[RunningProcess]]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a running child cannot do, as "refuses messages"; whether another start would mend it."""

    text: str
    is_mended_by_restart: bool


FindFault = Callable[[], Awaitable[Fault | None]]


async def no_fault() -> None:
    """For a child that does its work while it runs."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A child: its program, its readiness probe, its stop signal."""

    name: str
    program: Program
    is_ready: Probe
    # One that ends is reported at once. Imports from a cold disk, beside other programs, take a minute.
    ready_timeout_seconds: float = 120.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_seconds: float = 10.0
    metrics_address: str = ""
    find_fault: FindFault = no_fault


@dataclass(frozen=True, slots=True)
class ChildContext:
    """The parts of the stack that a child uses: its log, its listeners, and children that start before it."""

    log_path: Path
    report: Report
    on_change: Callable[[], None]
    needs: tuple["SupervisedChild", ...] = ()
    start: StartProgram = spawn


class SupervisedChild:
    """Gives up only before the first success: a running stack heals by itself."""

    def __init__(self, spec: ChildSpec, context: ChildContext) -> None:
        self.spec = spec
        self.restarts = 0
        self.state = "waiting"
        self.ready = asyncio.Event()
        self.first_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._context = context
        self._process: RunningProcess | None = None
        self._log_start = 0
        self._fault_looks = FAULT_LOOKS
        self._supervising = asyncio.create_task(self._supervise(), name=f"supervise {spec.name}")

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def snapshot(self) -> ChildState:
        return ChildState(
            self.pid, self.state, self.restarts, str(self._context.log_path), self.spec.metrics_address
        )

    async def ended(self) -> None:
        """Returns when the child is no longer supervised; raises what ended that, if it was not `stop`."""
        await asyncio.wait([self._supervising])
        if not self._supervising.cancelled():
            self._supervising.result()

    async def stop(self) -> None:
        # Cancelled until it ends: a library may lose a cancellation that arrives together with an answer.
        while not self._supervising.done():
            self._supervising.cancel()
            await asyncio.wait([self._supervising], timeout=CANCEL_AGAIN_SECONDS)
        if not self.first_ready.done():
            self.first_ready.cancel()
        self.ready.clear()
        if self._process is not None:
            await self._stop_process(self._process)
        self._become("stopped")

    async def _stop_process(self, process: RunningProcess) -> None:
        self._become("stopping")
        timeout = self.spec.stop_timeout_seconds
        if not await terminate(process, self.spec.stop_signal, timeout):
            self._context.report(f"{self.name} did not stop within {timeout:g} s and was killed")

    async def _supervise(self) -> None:
        clock = asyncio.get_running_loop().time
        failures, began = 0, clock()
        while True:
            reason = await self._start_until_ready()
            if reason is None:
                lived_seconds = await self._live()
                failures = 0 if lived_seconds > STEADY_AFTER_SECONDS else failures + 1
            else:
                failures += 1
                is_late = clock() - began >= self.spec.ready_timeout_seconds
                if not self.first_ready.done() and (is_late or failures >= GIVE_UP_AFTER_FAILURES):
                    self._give_up(reason)
                    return
            self.restarts += 1
            self._become("restarting")
            await asyncio.sleep(_backoff_seconds(failures))

    async def _start_until_ready(self) -> str | None:
        """None once it is ready, else why not."""
        for needed in self._context.needs:
            await needed.ready.wait()
        self._log_start = child_logs.log_size(self._context.log_path)
        self._become("starting")
        try:
            self._process = await self._context.start(self.spec.program, self._context.log_path)
        except OSError as error:
            return f"cannot be run ({error})"
        if await self._wait_until_ready(self._process):
            self._announce_ready()
            return None
        if self._process.returncode is not None:
            return _describe_exit(self._end_group(self._process))
        await terminate(self._process, self.spec.stop_signal, self.spec.stop_timeout_seconds)
        self._process = None
        return f"did not answer within {self.spec.ready_timeout_seconds:g} s"

    async def _wait_until_ready(self, process: RunningProcess) -> bool:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.spec.ready_timeout_seconds
        pause = FIRST_POLL_SECONDS
        while process.returncode is None and clock() < deadline:
            # The process is checked again: another program may have taken the port and answered.
            if await self.spec.is_ready() and process.returncode is None:
                return True
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, MAX_POLL_SECONDS)
        return False

    def _announce_ready(self) -> None:
        self.ready.set()
        self._become("ready")
        if not self.first_ready.done():
            self.first_ready.set_result(None)
        elif self.restarts:
            self._context.report(f"{self.name} is ready again (process {self.pid})")

    async def _live(self) -> float:
        assert self._process is not None
        clock = asyncio.get_running_loop().time
        began = clock()
        watching = asyncio.create_task(self._end_when_faulty(self._process), name=f"watch {self.name}")
        try:
            await self._process.wait()
        finally:
            await cancelled(watching)
        # Cleared first, so that children which need this one wait for its next start.
        self.ready.clear()
        ended = _describe_exit(self._end_group(self._process))
        self._context.report(f"{self.name} {ended}: starting it again")
        return clock() - began

    async def _end_when_faulty(self, process: RunningProcess) -> None:
        """Ends the process once a fault stays that another start would mend."""
        found = 0
        while found < self._fault_looks:
            await asyncio.sleep(FAULT_POLL_SECONDS)
            fault = await self.spec.find_fault()
            found = found + 1 if fault and fault.is_mended_by_restart else 0
            self._show_fault(fault)
            if fault is None:
                self._fault_looks = FAULT_LOOKS
        self._fault_looks = min(2 * self._fault_looks, MAX_FAULT_LOOKS)
        self._context.report(f"{self.name} is stopped, since another start mends this")
        await terminate(process, self.spec.stop_signal, self.spec.stop_timeout_seconds)

    def _show_fault(self, fault: Fault | None) -> None:
        state = fault.text if fault else "ready"
        if state != self.state:
            self._context.report(f"{self.name} {fault.text}" if fault else f"{self.name} is in order again")
            self._become(state)

    def _end_group(self, dead: RunningProcess) -> int:
        """Kills the rest of its process group now: the pid, which names the group, may be reused later."""
        kill_group(dead.pid)
        self._process = None
        assert dead.returncode is not None
        return dead.returncode

    def _give_up(self, reason: str) -> None:
        self._become("failed")
        log_path = self._context.log_path
        log_tail = child_logs.log_tail(log_path, self._log_start)
        self.first_ready.set_exception(ChildFailedToStart(self.name, reason, log_path, log_tail))

    def _become(self, state: str) -> None:
        self.state = state
        self._context.on_change()


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancels until it has ended, for the reason in `stop`. Its error is raised."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_AGAIN_SECONDS)
    if not task.cancelled():
        task.result()


def _backoff_seconds(failures: int) -> float:
    """The pause before a restart. It doubles while the child keeps failing."""
    return min(FIRST_BACKOFF_SECONDS * 2.0 ** max(failures - 1, 0), MAX_BACKOFF_SECONDS)


def _describe_exit(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
