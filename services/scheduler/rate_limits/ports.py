"""Where quotas are stored for workers."""

from collections.abc import Mapping
from typing import Protocol

from services.scheduler.rate_limits.rate_report import RateQuota


class QuotaStore(Protocol):
    """Tells workers how fast they may ask a provider; what was told stays until it is dropped."""

    async def put(self, pace: str, grant: RateQuota) -> None: ...

    async def drop(self, pace: str) -> None: ...

    async def stored(self) -> Mapping[str, RateQuota]: ...
