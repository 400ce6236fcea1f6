"""Follows a run to its end on a display, through outages of the gateway and Ctrl-C."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from rich.console import Console

from proctor.cli.render.terminal import Terminal
from proctor.cli.runs.display import RunDisplay
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient, Reconnect
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2


class InterruptChoice(Enum):
    """The effect of a Ctrl-C."""

    CANCEL = "cancel the run"
    DETACH = "stop watching; the run goes on"
    KEEP_WATCHING = "keep watching"


Ask = Callable[["Interrupts"], Awaitable[InterruptChoice]]


class Interrupts:
    """A queue of Ctrl-C presses: each one wakes one `wait`."""

    def __init__(self) -> None:
        self._pending: asyncio.Queue[None] = asyncio.Queue(maxsize=8)

    def raise_one(self) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._pending.put_nowait(None)

    async def wait(self) -> None:
        await self._pending.get()


@dataclass(frozen=True, slots=True)
class Viewer:
    """A display, and the decision on a Ctrl-C."""

    display: RunDisplay
    ask: Ask


def viewer_for(terminal: Terminal, on_interrupt: Ask) -> Viewer:
    """Asks at a terminal; elsewhere `on_interrupt` decides."""
    ask = _ask_on(terminal.progress) if terminal.can_ask else on_interrupt
    return Viewer(RunDisplay(terminal.progress), ask)


async def detach(_: Interrupts) -> InterruptChoice:
    return InterruptChoice.DETACH


async def cancel(_: Interrupts) -> InterruptChoice:
    return InterruptChoice.CANCEL


async def follow_run(client: ProctorClient, run_id: str, viewer: Viewer) -> run_pb2.Run | None:
    """Returns the run in its final state, or None when the viewer detached."""
    watch = asyncio.create_task(_watch(client, run_id, viewer.display), name=f"watch {run_id}")
    try:
        with _listening() as pending:
            while await _interrupted(watch, pending):
                viewer.display.pause()
                choice = await viewer.ask(pending)
                if choice is InterruptChoice.DETACH:
                    return None
                if choice is InterruptChoice.CANCEL:
                    await _cancel_run(client, run_id)
                viewer.display.resume()
        return await watch
    finally:
        watch.cancel()
        await asyncio.wait({watch})
        viewer.display.close()


@contextlib.contextmanager
def _listening() -> Iterator[Interrupts]:
    interrupts = Interrupts()
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, interrupts.raise_one)
    try:
        yield interrupts
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        # Otherwise a later Ctrl-C would stop the loop instead of cancelling the tasks in it.
        signal.signal(signal.SIGINT, before)


async def _interrupted(watch: asyncio.Task[run_pb2.Run], pending: Interrupts) -> bool:
    """True for a Ctrl-C, False when the run has finished first."""
    interrupt = asyncio.create_task(pending.wait(), name="Ctrl-C")
    try:
        await asyncio.wait({watch, interrupt}, return_when=asyncio.FIRST_COMPLETED)
        return not watch.done()
    finally:
        interrupt.cancel()


async def _watch(client: ProctorClient, run_id: str, display: RunDisplay) -> run_pb2.Run:
    policy = Reconnect(on_lost=lambda: display.note("The connection was lost; reconnecting…"))
    run = run_pb2.Run()
    async for run in client.watch_run(run_id, policy):
        display.show(run)
    return run


async def _cancel_run(client: ProctorClient, run_id: str) -> None:
    try:
        await client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
    except Refused as error:
        # The run finished before the answer was typed: the watch reports its state.
        if error.reason != "RUN_ALREADY_FINISHED":
            raise


def _ask_on(console: Console) -> Ask:
    async def ask(interrupts: Interrupts) -> InterruptChoice:
        console.print("Cancel the run (c), detach and let it go on (d), or keep watching (Enter)? ", end="")
        answer = asyncio.create_task(_read_line(), name="read an answer")
        again = asyncio.create_task(interrupts.wait(), name="second Ctrl-C")
        try:
            await asyncio.wait({answer, again}, return_when=asyncio.FIRST_COMPLETED)
            return _choice_of(answer.result()) if answer.done() else InterruptChoice.DETACH
        finally:
            answer.cancel()
            again.cancel()

    return ask


def _choice_of(answer: str) -> InterruptChoice:
    if not answer.endswith("\n"):
        return InterruptChoice.DETACH  # the terminal was closed
    word = answer.strip().lower()
    if word and "cancel".startswith(word):
        return InterruptChoice.CANCEL
    return InterruptChoice.DETACH if word and "detach".startswith(word) else InterruptChoice.KEEP_WATCHING


async def _read_line() -> str:
    """Reads without a thread, which would block the exit until a line is typed."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not line.done():
            line.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, read)
    try:
        return await line
    finally:
        loop.remove_reader(sys.stdin)
