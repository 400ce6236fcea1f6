"""Wanting to lead, for ever: wait for a term, lead while it lasts, want again."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NoReturn, Protocol

from services.common.structured_logs import get_logger
from services.scheduler.errors import LeadershipLost
from services.scheduler.ports import Fence

log = get_logger()


class Term(Protocol):
    """Leadership that is held; ends with the lock."""

    @property
    def fence(self) -> Fence: ...

    async def lost(self) -> None:
        """Returns when the lock is no longer ours."""
        ...


class Leadership(Protocol):
    def term(self) -> AbstractAsyncContextManager[Term]:
        """Waits until nobody else leads."""
        ...


async def campaign(leadership: Leadership, lead: Callable[[Fence], Awaitable[None]]) -> NoReturn:
    while True:
        async with leadership.term() as term:
            log.info("leading", fence=term.fence)
            try:
                await _lead_until_lost(term, lead)
            except* LeadershipLost:
                log.warning("leadership lost to another", fence=term.fence)
            else:
                log.warning("leadership lost", fence=term.fence)


async def _lead_until_lost(term: Term, lead: Callable[[Fence], Awaitable[None]]) -> None:
    async def work() -> None:
        await lead(term.fence)

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work(), name="lead")
        await term.lost()
        working.cancel()
