"""Rate reports of workers about one provider and key, and the quota that workers get there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RateReport:
    """Counts are since the worker started, so a lost report does no harm."""

    worker_id: str
    rate_limit_key: str
    sent: int = 0
    rate_limited: int = 0
    waiting: int = 0
    resume_at: datetime | None = None
    allowed_requests_per_second: float | None = None
    allowed_tokens_per_second: float | None = None
    retries: Mapping[str, int] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        """Requests that were not rate limited so far: a 429 comes at once, an answer may take minutes."""
        return self.sent - self.rate_limited


@dataclass(frozen=True, slots=True)
class RateQuota:
    """Limits per second of all workers together, None if none is known. `shares` are those of the workers."""

    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    resume_at: datetime | None = None

    @property
    def has_limit(self) -> bool:
        limits = (self.requests_per_second, self.tokens_per_second, self.resume_at)
        return any(limit is not None for limit in limits)
