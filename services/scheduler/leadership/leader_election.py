"""Leader election: wait for the lock, lead until it is lost, repeat."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NewType, NoReturn, Protocol

from services.common.errors import ErrorKind
from services.common.structured_logs import get_logger
from services.scheduler.errors import SchedulerError

# Number of a term of leadership. Each write of a leader checks it, in the same transaction.
FencingToken = NewType("FencingToken", int)


class LeadershipLost(SchedulerError):
    """Another scheduler leads now."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"


log = get_logger()


class LeaderTerm(Protocol):
    """Leadership that is held; ends with the lock."""

    @property
    def fencing_token(self) -> FencingToken: ...

    async def lost(self) -> None:
        """Returns when the lock is no longer ours."""
        ...


class LeaderElection(Protocol):
    def term(self) -> AbstractAsyncContextManager[LeaderTerm]:
        """Waits until nobody else leads."""
        ...


async def lead_when_elected(
    leadership: LeaderElection, lead: Callable[[FencingToken], Awaitable[None]]
) -> NoReturn:
    while True:
        async with leadership.term() as term:
            log.info("leading", token=term.fencing_token)
            try:
                await _lead_until_lost(term, lead)
            except* LeadershipLost:
                log.warning("leadership lost to another", token=term.fencing_token)
            else:
                log.warning("leadership lost", token=term.fencing_token)


async def _lead_until_lost(term: LeaderTerm, lead: Callable[[FencingToken], Awaitable[None]]) -> None:
    async def work() -> None:
        await lead(term.fencing_token)

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work(), name="lead")
        await term.lost()
        working.cancel()
