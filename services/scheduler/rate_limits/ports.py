"""The store of quotas."""

from collections.abc import Mapping
from typing import Protocol

from services.scheduler.rate_limits.rate_report import RateQuota


class QuotaStore(Protocol):
    """Quotas by rate limit key, where workers watch them. A quota holds until it is replaced or dropped."""

    async def put(self, rate_limit_key: str, quota: RateQuota) -> None: ...

    async def drop(self, rate_limit_key: str) -> None: ...

    async def stored(self) -> Mapping[str, RateQuota]: ...
