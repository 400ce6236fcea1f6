"""Holds a lease while its work goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from services.common.errors import DependencyUnavailable
from services.common.structured_logs import get_logger
from services.results.leases.lease import Work
from services.results.leases.ports import LeaseStore

# Another replica goes on so soon after a crash.
LEASE_SECONDS = 6.0
# Renewals within one lease: a slow one is still in time.
RENEWALS = 3

log = get_logger()


class LeaseLost(Exception):
    """Another replica took the lease: the work is to end here."""


@asynccontextmanager
async def hold_lease(
    leases: LeaseStore, work: Work, share: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[None]:
    """Renews the lease until the block ends; `share` says how far the work is.

    Raises LeaseLost, in place of what the block waits for, where another replica took the lease.
    """
    until_lost = asyncio.timeout(None)
    try:
        async with until_lost:
            renewing = asyncio.create_task(
                _renew(leases, work, share, until_lost), name=f"renew lease of {work.kind} {work.run_id}"
            )
            try:
                yield
            finally:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
    except TimeoutError as error:
        if until_lost.expired():
            raise LeaseLost from error
        raise


async def _renew(
    leases: LeaseStore, work: Work, share: Callable[[], float], until_lost: asyncio.Timeout
) -> None:
    is_held = True
    while is_held:
        await asyncio.sleep(LEASE_SECONDS / RENEWALS)
        # While Postgres is away no other replica can take it.
        with suppress(DependencyUnavailable):
            is_held = await leases.renew(work, share(), LEASE_SECONDS)
    log.info("lease was taken away", work=work.kind, run_id=work.run_id)
    until_lost.reschedule(asyncio.get_running_loop().time())
