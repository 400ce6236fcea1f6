"""What workers met at a provider under one key, and what they are granted there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RateReport:
    """All counts are since the worker began: a lost report does no harm."""

    worker_id: str
    pace: str
    sent: int = 0
    refused: int = 0
    waiting: int = 0
    resume_at: datetime | None = None
    allowed_requests: float | None = None
    allowed_tokens: float | None = None
    retries: Mapping[str, int] = field(default_factory=dict)

    @property
    def taken(self) -> int:
        """What the provider took, as far as known: a refusal comes at once, an answer may take minutes."""
        return self.sent - self.refused


@dataclass(frozen=True, slots=True)
class RateQuota:
    """Per second, of all workers together; None while no limit is known."""

    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    resume_at: datetime | None = None

    @property
    def says_something(self) -> bool:
        limits = (self.requests_per_second, self.tokens_per_second, self.resume_at)
        return any(limit is not None for limit in limits)
