"""Leader election: wait for the lock, lead until it is lost, repeat."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NewType, NoReturn, Protocol

from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger

log = get_logger()

# The number of a term of leadership. Every write of a leader checks it in the same transaction.
FencingToken = NewType("FencingToken", int)


class LeadershipLost(DomainError, kind=ErrorKind.UNAVAILABLE):
    """Another scheduler leads now."""


class LeaderTerm(Protocol):
    """Leadership for as long as the lock is held."""

    fencing_token: FencingToken

    async def lost(self) -> None:
        """Returns when the lock is lost."""
        ...


class LeaderElection(Protocol):
    def term(self) -> AbstractAsyncContextManager[LeaderTerm]:
        """Waits until no other scheduler leads."""
        ...


async def lead_when_elected(
    election: LeaderElection, lead: Callable[[FencingToken], Awaitable[None]]
) -> NoReturn:
    """Runs `lead` in each term of this process, and cancels it when the term ends."""
    # No pause here: `term` waits for the lock, and pauses while another holds it.
    while True:
        async with election.term() as term:
            log.info("leading", fencing_token=term.fencing_token)
            try:
                await _lead_until_lost(term, lead)
            # The only failure that is expected: any other ends the process, and another scheduler takes over.
            except* LeadershipLost:
                log.warning("another scheduler leads", fencing_token=term.fencing_token)
            else:
                log.warning("leadership lost", fencing_token=term.fencing_token)


async def _lead_until_lost(term: LeaderTerm, lead: Callable[[FencingToken], Awaitable[None]]) -> None:
    async def work() -> None:
        await lead(term.fencing_token)

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work(), name="lead")
        await term.lost()
        # Ends the group. If `lead` fails first, the group cancels the wait for the lock instead.
        working.cancel()
