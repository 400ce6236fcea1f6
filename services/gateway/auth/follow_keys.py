"""Keeps the stored keys of this replica as they are at the scheduler."""

import asyncio
from typing import NoReturn

from proctor.v1.access_service_pb2 import ListAccessChangesRequest
from services.common.errors import DomainError
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.gateway.auth.key_ring import KeyRing
from services.gateway.backends.calls import Scheduler

log = get_logger()
# A revoked key is refused so much later at the most.
EVERY_SECONDS = 0.4
# Above the time of any answer that comes.
_TIMEOUT_SECONDS = 2.0


class FollowKeys:
    """Asks the scheduler for changes, a few times a second and when an unknown key comes."""

    def __init__(self, ring: KeyRing, scheduler: Scheduler) -> None:
        self.ring = ring
        self._scheduler = scheduler
        self._asking = asyncio.Lock()
        self._asked = 0
        self._is_away = False

    async def run(self) -> NoReturn:
        await every(EVERY_SECONDS, self.refresh, name="follow keys")

    async def refresh(self) -> None:
        """Asks once for all that wait here."""
        asked = self._asked
        async with self._asking:
            # Another one has asked since this one waits.
            if self._asked > asked:
                return
            self._asked += 1
            await self._ask()

    async def _ask(self) -> None:
        has_more = True
        while has_more:
            request = ListAccessChangesRequest(version=self.ring.version, used_key_ids=self.ring.take_used())
            try:
                changes = await self._scheduler.access.ListAccessChanges(request, timeout=_TIMEOUT_SECONDS)
            except DomainError as error:
                self._note_away(error)
                return
            self.ring.learn(changes)
            has_more = changes.has_more or changes.is_unknown_version
        self._is_away = False

    def _note_away(self, error: DomainError) -> None:
        if not self._is_away:
            log.info("keys cannot be read now", reason=error.reason)
        self._is_away = True
