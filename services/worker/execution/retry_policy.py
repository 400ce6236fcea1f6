"""When a sample is asked again after a failure of the machinery."""

from __future__ import annotations

from services.worker.engines.engine import EngineFailure
from services.worker.rate_limits.backoff import Backoff, heeded


class RetryPolicy:
    """Decides by the class of a failure. A rate limit counts as no try: the provider's pace waits it out."""

    def __init__(self, backoff: Backoff, max_tries: int = 8) -> None:
        self._backoff = backoff
        self._max_tries = max_tries

    def delay_seconds(self, failure: EngineFailure, tries: int) -> float | None:
        """Seconds to wait before the next try after `tries` of them; None when it is not worth one."""
        if not failure.is_transient or tries >= self._max_tries:
            return None
        # Not before the provider said, and not all at the same instant.
        told = failure.retry_after_seconds
        return self._backoff.seconds(tries) if told is None else heeded(told) + self._backoff.seconds(1)
