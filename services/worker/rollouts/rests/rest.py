"""The rest of a rollout: it gives its sandbox and its place in the worker to others, and takes them again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from services.worker.rollouts.errors import BegunAnew
from services.worker.rollouts.ports import RolloutPlace
from services.worker.rollouts.rests.restable_sandbox import RestableSandbox

# Maximum number of times that a rollout begins anew; from then on it waits in its sandbox.
_MOST_ANEW = 8


async def _tell_nobody() -> None:
    """The default of `on_rest`."""


class Rest:
    """`sandbox` is set while the rollout has one. Without a `place` it never rests.

    The sandbox is closed, and its folders are kept. Where `needs_processes`, which no folder holds, it stays
    open instead, one of `kept_open`; without an answer yet, or a place there, the rollout begins anew.
    """

    def __init__(
        self,
        place: RolloutPlace | None = None,
        kept_open: asyncio.Semaphore | None = None,
        on_rest: Callable[[], Awaitable[None]] = _tell_nobody,
    ) -> None:
        self.sandbox: RestableSandbox | None = None
        self.needs_processes = False
        self.has_answer = False
        self.is_resting = False
        self._place = place
        self._kept_open = kept_open or asyncio.Semaphore(0)
        self._on_rest = on_rest
        self._slots: asyncio.Semaphore | None = None
        self._has_place = True
        self._has_slot = False
        self._is_kept_open = False
        self._begun_anew = 0

    @asynccontextmanager
    async def in_slot(self, slots: asyncio.Semaphore) -> AsyncIterator[None]:
        """Takes a slot, which is free while the rollout rests."""
        await slots.acquire()
        self._slots, self._has_slot = slots, True
        try:
            yield
        finally:
            self._free_slot()
            self._close_kept()

    async def begin(self) -> bool:
        """Whether the rollout rests now. Raises SandboxLost, and BegunAnew."""
        place, sandbox, slots = self._place, self.sandbox, self._slots
        if place is None or sandbox is None or slots is None:
            return False
        if self.needs_processes:
            if not self.has_answer or self._kept_open.locked():
                if self._begun_anew == _MOST_ANEW:
                    return False
                raise BegunAnew
            await self._kept_open.acquire()
            self._is_kept_open = True
        elif not await sandbox.rest():
            return False
        self._give(place)
        await self._on_rest()
        return True

    def begin_anew(self) -> None:
        """The rollout rests without a sandbox: its execution has ended."""
        assert self._place is not None
        self.sandbox, self.has_answer = None, False
        self._begun_anew += 1
        self._give(self._place)

    async def end(self) -> None:
        """Waits for a place, as a rollout does that begins. Raises SandboxError."""
        if not self.is_resting:
            return
        assert self._place is not None
        if not self._has_place:
            await self._place.take()
            self._has_place = True
        if self.sandbox is not None:
            assert self._slots is not None
            if not self._has_slot:
                await self._slots.acquire()
                self._has_slot = True
            if not self._is_kept_open:
                await self.sandbox.wake()
        self._close_kept()
        self.is_resting = False

    def _give(self, place: RolloutPlace) -> None:
        self.is_resting, self._has_place = True, False
        self._free_slot()
        place.give()

    def _free_slot(self) -> None:
        if self._has_slot:
            assert self._slots is not None
            self._has_slot = False
            self._slots.release()

    def _close_kept(self) -> None:
        if self._is_kept_open:
            self._is_kept_open = False
            self._kept_open.release()
