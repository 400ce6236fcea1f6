"""How many samples are asked at a time; a suspect of killing the engine is asked alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager


class Slots:
    def __init__(self, count: int) -> None:
        self.count = count
        self.in_use = 0
        self._free = asyncio.Semaphore(count)
        self._door = asyncio.Lock()

    async def acquire(self) -> None:
        if self._door.locked():
            async with self._door:
                pass
        await self._free.acquire()
        self.in_use += 1

    def release(self) -> None:
        self._leave()
        self._free.release()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Waits until nothing else is asked and lets nobody in meanwhile."""
        async with self._door, AsyncExitStack() as taken:
            for _ in range(self.count):
                await self._free.acquire()
                taken.callback(self._free.release)
            self.in_use = 1
            taken.callback(self._leave)
            yield

    def _leave(self) -> None:
        self.in_use -= 1
