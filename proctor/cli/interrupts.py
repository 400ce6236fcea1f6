"""Ctrl-C while a run is followed: a person at a terminal is asked whether to cancel or to detach."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from enum import Enum

from rich.console import Console


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
