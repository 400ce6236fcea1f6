"""Threads for work that takes long. Python cannot stop a thread, so the work checks for cancellation."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Event
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from services.common.errors import WorkCancelled

Given = ParamSpec("Given")
Made = TypeVar("Made")

_STOP: ContextVar[Event] = ContextVar("set when the work of this thread is cancelled")


def check_cancelled() -> None:
    """Raises `WorkCancelled`. Called between the parts of long work; has no effect in other threads."""
    stop = _STOP.get(None)
    if stop is not None and stop.is_set():
        raise WorkCancelled


class CancellableThreads:
    """A pool of `count` threads with `limit_seconds` per call, None for no limit.

    The pool is separate, so slow work does not delay other kinds of work.
    """

    def __init__(self, count: int, limit_seconds: float | None = None) -> None:
        self.limit_seconds = limit_seconds
        self._slots = asyncio.Semaphore(count)
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="cancellable")
        # A user whose work neither runs nor waits has no entry.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run_for(
        self, user: str, work: Callable[Given, Made], *args: Given.args, **kwargs: Given.kwargs
    ) -> Made:
        """As `run`, one call of a user at a time: the slow work of one user holds one thread and no more."""
        turn = self._turns.get(user)
        if turn is None:
            turn = self._turns[user] = asyncio.Lock()
        async with turn:
            return await self.run(work, *args, **kwargs)

    async def run(self, work: Callable[Given, Made], *args: Given.args, **kwargs: Given.kwargs) -> Made:
        """Raises `TimeoutError` after the limit; then, and if cancelled, the work ends at its next check."""
        stop = Event()
        context = copy_context()
        context.run(_STOP.set, stop)
        called = partial(context.run, work, *args, **kwargs)
        async with self._slots, asyncio.timeout(self.limit_seconds):
            try:
                return await asyncio.get_running_loop().run_in_executor(self._executor, called)
            finally:
                stop.set()
