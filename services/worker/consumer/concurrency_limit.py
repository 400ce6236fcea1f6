"""How many samples a worker executes at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from services.worker.consumer.gpu_time import GpuTime


class ConcurrencyLimit:
    """How many samples are sent to the engine at a time; one that may have killed an engine is sent alone."""

    def __init__(self, limit: int, gpu_time: GpuTime | None = None) -> None:
        self.limit = limit
        self.in_use = 0
        self._free = asyncio.Semaphore(limit)
        self._exclusive = asyncio.Lock()
        self._gpu_time = gpu_time

    @property
    def gpu_seconds(self) -> float:
        """GPU seconds of a sample that is in flight since the start.

        Any other sample has used the growth since its own start.
        """
        return self._gpu_time.seconds_each if self._gpu_time else 0.0

    def _change(self, in_use: int) -> None:
        self.in_use = in_use
        if self._gpu_time:
            self._gpu_time.change(in_use)

    async def acquire(self) -> None:
        # Otherwise new samples would take each free permit, and the exclusive one would wait for ever.
        if self._exclusive.locked():
            async with self._exclusive:
                pass
        await self._free.acquire()
        self._change(self.in_use + 1)

    def release(self, _: object = None) -> None:
        """Also as the callback of a task that is done."""
        self._change(self.in_use - 1)
        self._free.release()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Waits until nothing else is in use, and lets nothing else begin meanwhile."""
        async with self._exclusive, AsyncExitStack() as taken:
            for _ in range(self.limit):
                await self._free.acquire()
                taken.callback(self._free.release)
            self._change(1)
            try:
                yield
            finally:
                self._change(self.in_use - 1)
