"""How long to stand back after a failure: exponential, with full jitter."""

from __future__ import annotations

from tenacity import RetryCallState, Retrying, wait_random_exponential

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 20.0
# Of what a provider says. Then it is asked whether it still stands: the word may be wrong, or the limit gone.
LONGEST_HEEDED_SECONDS = 60.0
# A state wants one, and a wait looks at nothing of it.
_NOBODY = Retrying()


def heeded(told_seconds: float) -> float:
    """How long a provider's word to come back later is heeded."""
    return min(told_seconds, LONGEST_HEEDED_SECONDS)


class Backoff:
    """Anything from nothing to a longest wait, which doubles time by time."""

    def __init__(
        self, first_seconds: float = _FIRST_SECONDS, longest_seconds: float = _LONGEST_SECONDS
    ) -> None:
        self._wait = wait_random_exponential(multiplier=first_seconds, max=longest_seconds)

    def seconds(self, times: int) -> float:
        """How long to wait after the n-th failure in a row."""
        state = RetryCallState(_NOBODY, None, (), {})
        state.attempt_number = times
        return float(self._wait(state))
