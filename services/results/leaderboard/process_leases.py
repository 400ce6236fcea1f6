"""Works on closed runs, each run by the one replica that holds its lease."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from services.common.errors import DependencyUnavailable
from services.results.leaderboard.ports import Lease, LeaseStore, Work
from services.results.summaries.close_run import LEASE_SECONDS, RENEWALS

# Below the time after which a loop that stops is cancelled again (`_CANCEL_AGAIN_SECONDS`).
RELEASE_SECONDS = 2.0
# Work that was started more often than this has ended the processes that did it.
MAX_STARTS = 5


async def process_leases(leases: LeaseStore, work: Work, step: Callable[[Lease], Awaitable[bool]]) -> None:
    """All runs that wait. `step` says whether its run is done; if not, it comes after the others."""
    while (lease := await leases.acquire(work, LEASE_SECONDS)) is not None:
        try:
            async with _renewed(leases, lease):
                is_done = await step(lease)
        except DependencyUnavailable:
            # The start counts, so that a run which brings its process down each time comes after the others.
            # If this cannot be written either, the lease ends by itself.
            await leases.release(lease, counts=True)
            raise
        except asyncio.CancelledError:
            # This replica stops: another need not wait for the end of the lease. The start does not count.
            await _release(leases, lease)
            raise
        if is_done:
            await leases.delete(lease)
        else:
            await leases.release(lease, counts=True)


async def _release(leases: LeaseStore, lease: Lease) -> None:
    # Postgres may be away; then the lease ends by itself.
    with suppress(DependencyUnavailable, TimeoutError):
        async with asyncio.timeout(RELEASE_SECONDS):
            await leases.release(lease, counts=False)


@asynccontextmanager
async def _renewed(leases: LeaseStore, lease: Lease) -> AsyncIterator[None]:
    """Unlike the lease of `CloseRun`, this one is never revoked and reports no progress."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / RENEWALS)
            await leases.renew(lease, LEASE_SECONDS)

    renewing = asyncio.create_task(renew(), name=f"renew lease of {lease.run_id}")
    try:
        yield
    finally:
        renewing.cancel()
        # A run whose lease cannot be renewed may be worked on twice, which does no harm.
        await asyncio.gather(renewing, return_exceptions=True)
