"""When a sample is sent again after a failure."""

from dataclasses import dataclass

from services.worker.engines.engine import EngineFailure
from services.worker.rate_limits.backoff import Backoff, capped_retry_after


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Decides by the class of a failure. A 429 counts as no try: the rate limiter waits it out."""

    backoff: Backoff
    max_tries: int = 8

    def delay_seconds(self, failure: EngineFailure, tries: int) -> float | None:
        """Seconds to wait before the next try after `tries` of them; None where there is to be none."""
        if not failure.is_transient or tries >= self.max_tries:
            return None
        retry_after = failure.retry_after_seconds
        if retry_after is None:
            return self.backoff.seconds(tries)
        # Not before the provider's own time, and not all requests at the same instant.
        return capped_retry_after(retry_after) + self.backoff.seconds(1)
