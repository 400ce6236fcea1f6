"""Threads for work on suites and rows. Python cannot stop a thread, so the work checks for cancellation."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Event
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Made = TypeVar("Made")

_STOP: ContextVar[Event] = ContextVar("set when nobody waits any more for the work of this thread")


class WorkCancelled(Exception):
    """Nobody waits for the work of this thread any more."""


def check_cancelled() -> None:
    """Asked before each row and each template; elsewhere than in `SuiteThreads` there is nothing to ask."""
    stop = _STOP.get(None)
    if stop is not None and stop.is_set():
        raise WorkCancelled


class CancellableThreads:
    """So many pieces of work at a time; `limit_seconds` for each, None for no limit.

    The threads are its own: what takes long holds up no other kind of work.
    """

    def __init__(self, count: int, limit_seconds: float | None = None) -> None:
        self.limit_seconds = limit_seconds
        self._turns = asyncio.Semaphore(count)
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="suites")

    async def run(self, work: Callable[Given, Made], *args: Given.args, **kwargs: Given.kwargs) -> Made:
        """Raises `TimeoutError` beyond the limit; then, and when cancelled, the work ends at its next row."""
        stop = Event()
        context = copy_context()
        context.run(_STOP.set, stop)
        called = partial(context.run, work, *args, **kwargs)
        async with self._turns, asyncio.timeout(self.limit_seconds):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._executor, called)
            finally:
                stop.set()
