"""The rest of a rollout: it gives its sandbox and its place in the worker to others, and takes them again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.worker.rollouts.ports import RolloutPlace
from services.worker.rollouts.rests.restable_sandbox import RestableSandbox


class Rest:
    """`sandbox` is set while the rollout has one that can rest. Without a `place` it never rests."""

    def __init__(self, place: RolloutPlace | None = None) -> None:
        self.sandbox: RestableSandbox | None = None
        self.is_resting = False
        self._place = place
        self._slots: asyncio.Semaphore | None = None
        self._has_slot = False

    @asynccontextmanager
    async def in_slot(self, slots: asyncio.Semaphore) -> AsyncIterator[None]:
        """Takes a slot, which is free while the rollout rests."""
        await slots.acquire()
        self._slots, self._has_slot = slots, True
        try:
            yield
        finally:
            if self._has_slot:
                slots.release()

    async def begin(self) -> bool:
        """Whether the rollout rests now. Raises SandboxLost."""
        place, sandbox, slots = self._place, self.sandbox, self._slots
        if place is None or sandbox is None or slots is None or not await sandbox.rest():
            return False
        self.is_resting, self._has_slot = True, False
        slots.release()
        place.give()
        return True

    async def end(self) -> None:
        """Waits for a place, as a rollout does that begins. Raises SandboxError."""
        assert self._place is not None
        assert self._slots is not None
        assert self.sandbox is not None
        await self._place.take()
        await self._slots.acquire()
        self._has_slot, self.is_resting = True, False
        await self.sandbox.wake()
