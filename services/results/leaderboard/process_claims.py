"""Works on closed runs, each run by the one replica that claimed it."""

from collections.abc import Awaitable, Callable

from services.common.errors import DependencyUnavailable
from services.results.leaderboard.ports import Claim, ClaimStore, Work

# Beside the time that a piece of the work may take.
CLAIM_SECONDS = 60.0
# A run that was claimed more often ended the processes that worked on it.
MOST_TRIES = 5


async def process_claims(
    claims: ClaimStore, work: Work, seconds: float, step: Callable[[Claim], Awaitable[bool]]
) -> None:
    """All runs that wait. `step` says whether its run is done; if not, it comes after the others."""
    while (claim := await claims.claim(work, seconds)) is not None:
        try:
            is_done = await step(claim)
        except DependencyUnavailable:
            # The run is not to blame: if this cannot be written either, the claim ends by itself.
            await claims.drop(claim)
            raise
        if is_done:
            await claims.drop(claim)
        else:
            await claims.renew(claim, 0)
