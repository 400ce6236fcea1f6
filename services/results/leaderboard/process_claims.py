"""Works on closed runs, each run by the one replica that claimed it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from services.common.errors import DependencyUnavailable
from services.results.leaderboard.ports import Claim, ClaimStore, Work
from services.results.summaries.close_run import CLAIM_SECONDS, RENEWALS

# Below the time after which a loop that stops is cancelled again (`_CANCEL_AGAIN_SECONDS`).
GIVE_BACK_SECONDS = 2.0
# A run that was claimed more often ended the processes that worked on it.
MAX_TRIES = 5


async def process_claims(claims: ClaimStore, work: Work, step: Callable[[Claim], Awaitable[bool]]) -> None:
    """All runs that wait. `step` says whether its run is done; if not, it comes after the others."""
    while (claim := await claims.claim(work, CLAIM_SECONDS)) is not None:
        try:
            async with _renewed(claims, claim):
                is_done = await step(claim)
        except DependencyUnavailable:
            # The try counts, so that a run which brings its process down each time comes after the others. If
            # this cannot be written either, the claim ends by itself.
            await claims.renew(claim, 0)
            raise
        except asyncio.CancelledError:
            # This replica stops: another need not wait for the end of the claim, and the try does not count.
            await _give_back(claims, claim)
            raise
        if is_done:
            await claims.drop(claim)
        else:
            await claims.renew(claim, 0)


async def _give_back(claims: ClaimStore, claim: Claim) -> None:
    # Postgres may be away; then the claim ends by itself.
    with suppress(DependencyUnavailable, TimeoutError):
        async with asyncio.timeout(GIVE_BACK_SECONDS):
            await claims.give_back(claim)


@asynccontextmanager
async def _renewed(claims: ClaimStore, claim: Claim) -> AsyncIterator[None]:
    async def renew() -> None:
        while True:
            await asyncio.sleep(CLAIM_SECONDS / RENEWALS)
            await claims.renew(claim, CLAIM_SECONDS)

    renewing = asyncio.create_task(renew(), name=f"renew claim of {claim.run_id}")
    try:
        yield
    finally:
        renewing.cancel()
        # A claim that cannot be renewed may be worked on twice, which does no harm.
        await asyncio.gather(renewing, return_exceptions=True)
