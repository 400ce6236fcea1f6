"""When a sample is asked again after a failure of the machinery, and how long a worker stands back."""

from __future__ import annotations

from tenacity import RetryCallState, Retrying, wait_random_exponential

from services.worker.engine import EngineFailure

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 20.0
# A state wants one, and a wait looks at nothing of it.
_NOBODY = Retrying()


class Backoff:
    """Exponential with full jitter: anything from nothing to a longest wait, which doubles time by time."""

    def __init__(
        self, first_seconds: float = _FIRST_SECONDS, longest_seconds: float = _LONGEST_SECONDS
    ) -> None:
        self._wait = wait_random_exponential(multiplier=first_seconds, max=longest_seconds)

    def seconds(self, times: int) -> float:
        """How long to wait after the n-th failure in a row."""
        state = RetryCallState(_NOBODY, None, (), {})
        state.attempt_number = times
        return float(self._wait(state))


class RetryPolicy:
    """Decides by the class of a failure. A rate limit counts as no try: the provider's pace waits it out."""

    def __init__(self, max_tries: int = 8, backoff: Backoff | None = None) -> None:
        self.max_tries = max_tries
        self.backoff = backoff or Backoff()

    def delay_seconds(self, failure: EngineFailure, tries: int) -> float | None:
        """Seconds to wait before the next try after `tries` of them; None when it is not worth one."""
        if not failure.is_transient or tries >= self.max_tries:
            return None
        # Not before the provider said, and not all at the same instant.
        told = failure.retry_after_seconds
        return self.backoff.seconds(tries) if told is None else told + self.backoff.seconds(1)
