"""Token usage, times, prices and the states of an outcome."""

from dataclasses import dataclass
from enum import IntEnum


class FailureClass(IntEnum):
    """Class of a machinery failure; the numbers are those of the contract and of the table (0: answered)."""

    RATE_LIMIT = 1
    TIMEOUT = 2
    PROVIDER_ERROR = 3
    REFUSED = 4
    PROMPT_TOO_LONG = 5
    ENGINE = 6
    SCORING = 7

    @property
    def word(self) -> str:
        """The name that people and counters use."""
        return self.name.lower()


class OutcomeStatus(IntEnum):
    """The numbers are those of the contract and of the table."""

    SCORED = 1
    UNPARSED = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class TokenUsage:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; None where unknown."""

    total_seconds: float = 0.0
    queue_seconds: float | None = None
    first_token_seconds: float | None = None
    between_tokens_seconds: float | None = None


_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Of a million tokens each; prompt tokens from the provider's cache cost as others where unset.

    The scheduler reckons in the same way when it keeps to a cost limit; a test holds the two together.
    """

    input_per_million: float
    output_per_million: float
    cached_input_per_million: float | None = None
    currency: str = "USD"

    def cost(self, usage: TokenUsage) -> float:
        """In the currency of the price."""
        cached = self.cached_input_per_million
        cached = self.input_per_million if cached is None else cached
        fresh_tokens = max(usage.prompt_tokens - usage.cached_tokens, 0)
        prompt = fresh_tokens * self.input_per_million + usage.cached_tokens * cached
        return (prompt + usage.completion_tokens * self.output_per_million) / _MILLION
