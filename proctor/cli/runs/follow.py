"""Ctrl-C while a run is followed: a person at a terminal is asked whether to cancel or to detach.
Follows a run to its end on a display, through outages of the gateway and Ctrl-C.
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from rich.console import Console

from proctor.cli.render.terminal import Terminal
from proctor.cli.runs.display import RunDisplay, display_for
from proctor.client import errors as client_errors
from proctor.client.proctor_client import ProctorClient, Reconnect
from proctor.v1 import run_pb2


class Choice(Enum):
    CANCEL = "cancel the run"
    DETACH = "let it go on without us"
    STAY = "keep watching"


Ask = Callable[["Interrupts"], Awaitable[Choice]]


class Interrupts:
    """Each Ctrl-C wakes one `wait`."""

    def __init__(self) -> None:
        self._pending: asyncio.Queue[None] = asyncio.Queue(maxsize=8)

    def raise_one(self) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._pending.put_nowait(None)

    async def wait(self) -> None:
        await self._pending.get()


@contextlib.contextmanager
def listening() -> Iterator[Interrupts]:
    interrupts = Interrupts()
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, interrupts.raise_one)
    try:
        yield interrupts
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        # Else a later Ctrl-C would break the loop instead of cancelling what runs in it.
        signal.signal(signal.SIGINT, before)


def ask_on(console: Console) -> Ask:
    async def ask(interrupts: Interrupts) -> Choice:
        console.print("Cancel the run (c), detach and let it go on (d), or keep watching (Enter)? ", end="")
        answer = asyncio.create_task(_read_line(), name="read an answer")
        again = asyncio.create_task(interrupts.wait(), name="second Ctrl-C")
        try:
            await asyncio.wait({answer, again}, return_when=asyncio.FIRST_COMPLETED)
            return choice_of(answer.result()) if answer.done() else Choice.DETACH
        finally:
            answer.cancel()
            again.cancel()

    return ask


async def detach(_: Interrupts) -> Choice:
    """What nobody can be asked about: the run goes on."""
    return Choice.DETACH


async def cancel(_: Interrupts) -> Choice:
    """What would not go on without us."""
    return Choice.CANCEL


def choice_of(answer: str) -> Choice:
    if not answer.endswith("\n"):
        return Choice.DETACH  # the terminal is gone
    word = answer.strip().lower()
    if word and "cancel".startswith(word):
        return Choice.CANCEL
    return Choice.DETACH if word and "detach".startswith(word) else Choice.STAY


async def _read_line() -> str:
    """A line from the terminal without a thread that would outlive the question."""
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


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who watches: a display and the answer to a Ctrl-C."""

    display: RunDisplay
    ask: Ask


def viewer_for(terminal: Terminal, unasked: Ask = detach) -> Viewer:
    """`unasked` answers where nobody can be asked."""
    ask = ask_on(terminal.progress) if terminal.can_ask else unasked
    return Viewer(display_for(terminal.progress), ask)


async def follow_run(client: ProctorClient, run_id: str, viewer: Viewer) -> run_pb2.Run | None:
    """The run in its final state, None when the viewer detached."""
    watch = asyncio.create_task(_watch(client, run_id, viewer.display), name=f"watch {run_id}")
    try:
        with listening() as pending:
            while await _interrupted(watch, pending):
                viewer.display.pause()
                choice = await viewer.ask(pending)
                if choice is Choice.DETACH:
                    return None
                if choice is Choice.CANCEL:
                    await _cancel(client, run_id)
                viewer.display.resume()
        return await watch
    finally:
        watch.cancel()
        await asyncio.wait({watch})
        viewer.display.close()


async def _interrupted(watch: asyncio.Task[run_pb2.Run], pending: Interrupts) -> bool:
    """True for a Ctrl-C, False when the run has ended first."""
    interrupt = asyncio.create_task(pending.wait(), name="Ctrl-C")
    try:
        await asyncio.wait({watch, interrupt}, return_when=asyncio.FIRST_COMPLETED)
        return not watch.done()
    finally:
        interrupt.cancel()


async def _watch(client: ProctorClient, run_id: str, display: RunDisplay) -> run_pb2.Run:
    policy = Reconnect(on_lost=lambda: display.note("The connection was lost; looking for the run again…"))
    run = run_pb2.Run()
    async for run in client.watch_run(run_id, policy):
        display.show(run)
    return run


async def _cancel(client: ProctorClient, run_id: str) -> None:
    try:
        await client.cancel_run(run_id)
    except client_errors.Refused as error:
        # It ended while we asked: the watch is about to say how.
        if error.reason != "RUN_ALREADY_FINISHED":
            raise
