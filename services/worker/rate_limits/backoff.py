"""How long to wait after a failure: exponential, with full jitter."""

import random
from dataclasses import dataclass

# A longer Retry-After is cut to this: it may be wrong, or the limit may be lifted earlier.
LONGEST_RETRY_AFTER_SECONDS = 60.0
_MOST_DOUBLINGS = 30


def capped_retry_after(seconds: float) -> float:
    return min(seconds, LONGEST_RETRY_AFTER_SECONDS)


@dataclass(frozen=True, slots=True)
class Backoff:
    """A random wait below a bound that starts at `first_seconds` and doubles up to `longest_seconds`."""

    first_seconds: float = 0.5
    longest_seconds: float = 20.0

    def seconds(self, failures: int) -> float:
        """How long to wait after the n-th failure in a row, counted from 1."""
        bound = self.first_seconds * 2 ** min(failures - 1, _MOST_DOUBLINGS)
        return random.uniform(0, min(bound, self.longest_seconds))
