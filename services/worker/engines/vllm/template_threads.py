"""Renders chat templates beside the event loop, for a bounded time: a row chooses how long one takes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# A thread cannot be ended: one that is slow has the slot of its own until it ends.
_THREADS = 2


class TemplateThreads:
    """An honest template takes milliseconds. `seconds`: how long one rendering may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._slots = asyncio.Semaphore(_THREADS)
        # Templates have their own threads: slow ones take none from other work beside the event loop.
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="chat-template")

    async def render(self, template: Callable[[], str]) -> str:
        """Raises TimeoutError after its seconds, in which the wait for a thread does not count."""
        await self._slots.acquire()
        rendering = asyncio.get_running_loop().run_in_executor(self._executor, template)
        rendering.add_done_callback(lambda _: self._slots.release())
        async with asyncio.timeout(self._seconds):
            return await asyncio.shield(rendering)
