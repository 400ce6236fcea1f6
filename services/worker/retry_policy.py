"""When a sample is asked again after a failure of the machinery: exponential backoff with full jitter."""

from __future__ import annotations

from dataclasses import dataclass

from services.worker.engine import EngineFailure, FailureClass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_tries: int = 8
    first_delay_seconds: float = 0.5
    longest_delay_seconds: float = 20.0

    def delay_seconds(self, failure: EngineFailure, tries: int, jitter: float) -> float | None:
        """Seconds to wait before the next try after `tries` of them; None when it is not worth one.

        `jitter` is a draw from 0 to 1. A rate limit is tried until the deadline.
        """
        if not failure.is_transient:
            return None
        is_rate_limit = failure.failure_class is FailureClass.RATE_LIMIT
        if tries >= self.max_tries and not is_rate_limit:
            return None
        doublings = min(tries - 1, 30)
        backoff = min(self.longest_delay_seconds, self.first_delay_seconds * 2.0**doublings) * jitter
        if failure.retry_after_seconds is None:
            return backoff
        # Not before the provider said, and not all at the same instant.
        return failure.retry_after_seconds + min(backoff, self.first_delay_seconds)
