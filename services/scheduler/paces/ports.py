"""What the leader needs of the world for paces."""

from collections.abc import Mapping
from typing import Protocol

from services.scheduler.paces.pace import RateQuota


class PaceGrants(Protocol):
    """Tells workers how fast they may ask a provider; what was told stays until it is dropped."""

    async def put(self, pace: str, grant: RateQuota) -> None: ...

    async def drop(self, pace: str) -> None: ...

    async def stored(self) -> Mapping[str, RateQuota]: ...
