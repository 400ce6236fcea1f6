"""Works on closed runs, each run by the one replica that holds its lease."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from services.common.errors import DependencyUnavailable
from services.results.leaderboard.ports import WaitingRuns
from services.results.leases.hold_lease import LEASE_SECONDS, LeaseLost, hold_lease
from services.results.leases.lease import Lease, Work, WorkKind
from services.results.leases.ports import LeaseStore

# Below the time after which a loop that stops is cancelled again (`_CANCEL_AGAIN_SECONDS`).
RELEASE_SECONDS = 2.0
# Work that was started more often than this has ended the processes that did it.
MAX_STARTS = 5


@dataclass(frozen=True, slots=True)
class ProcessLeases:
    waiting: WaitingRuns
    leases: LeaseStore

    async def process(self, kind: WorkKind, step: Callable[[Lease], Awaitable[bool]]) -> None:
        """All runs that wait. `step` says whether its run is done; if not, it comes after the others."""
        while (lease := await self.acquire(kind)) is not None:
            # What another replica took is done there.
            with suppress(LeaseLost):
                await self._process(lease, step)

    async def acquire(self, kind: WorkKind, seconds: float = LEASE_SECONDS) -> Lease | None:
        """The lease of the next run that waits; None where none does."""
        while (work := await self.waiting.next(kind)) is not None:
            lease = await self.leases.acquire(work, seconds)
            # None where another replica was faster: its run waits no more.
            if lease is not None:
                return lease
        return None

    async def _process(self, lease: Lease, step: Callable[[Lease], Awaitable[bool]]) -> None:
        try:
            async with hold_lease(self.leases, lease.work):
                is_done = await step(lease)
        except DependencyUnavailable:
            # The start counts, so that a run which brings its process down each time comes after the others.
            # If this cannot be written either, the lease ends by itself.
            await self.leases.release(lease.work, counts=True)
            raise
        except asyncio.CancelledError:
            # This replica stops: another need not wait for the end of the lease. The start does not count.
            await self._release(lease.work)
            raise
        if is_done:
            await self.leases.delete(lease.work)
        else:
            await self.leases.release(lease.work, counts=True)

    async def _release(self, work: Work) -> None:
        # Postgres may be away; then the lease ends by itself.
        with suppress(DependencyUnavailable, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self.leases.release(work, counts=False)
