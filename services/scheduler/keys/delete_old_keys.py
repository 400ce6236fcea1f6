"""Deletes keys that ended long ago, so that lists stay short."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.scheduler.keys.ports import KeyStore

EVERY_SECONDS = 3600.0
# As long as changes are kept by default.
KEPT = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class DeleteOldKeys:
    keys: KeyStore
    clock: Clock

    async def lead(self) -> NoReturn:
        await every(EVERY_SECONDS, self.delete, name="delete old keys")

    async def delete(self) -> None:
        now = self.clock.now()
        await self.keys.delete_old(now - KEPT, now)
