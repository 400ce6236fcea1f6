"""The cost of an answer: tokens, times and money."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from proctor.values.making.quickly_made import quickly_made

_MILLION = 1_000_000


@quickly_made
@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts. `cached_tokens` are part of the prompt's, `reasoning_tokens` part of the completion's."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def by_kind(self) -> Mapping[str, int]:
        """The counts by their names without "_tokens"."""
        return {each.name.removesuffix("_tokens"): getattr(self, each.name) for each in fields(self)}

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def shown_tokens(self) -> int:
        """Tokens of the completion without reasoning."""
        return self.completion_tokens - self.reasoning_tokens


NO_TOKENS = TokenUsage()
USAGE_NAMES = tuple(each.name for each in fields(TokenUsage))


@quickly_made
@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; None where unknown. `between_tokens_seconds` is the mean between tokens after the first."""

    total_seconds: float = 0.0
    queue_seconds: float | None = None
    first_token_seconds: float | None = None
    between_tokens_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of a million tokens each. Without a price of their own cached tokens cost as others.

    `as_of` is the date of the price list, as 2026-09-01; empty where the list has none.
    """

    input_per_million: float
    output_per_million: float
    cached_input_per_million: float | None = None
    currency: str = "USD"
    as_of: str = ""

    @property
    def is_above_zero(self) -> bool:
        return any((self.input_per_million, self.output_per_million, self.cached_input_per_million))

    def cost(self, usage: TokenUsage) -> float:
        """The cost in `currency`."""
        cached = self.cached_input_per_million
        cached = self.input_per_million if cached is None else cached
        fresh_tokens = max(usage.prompt_tokens - usage.cached_tokens, 0)
        prompt = fresh_tokens * self.input_per_million + usage.cached_tokens * cached
        return (prompt + usage.completion_tokens * self.output_per_million) / _MILLION
