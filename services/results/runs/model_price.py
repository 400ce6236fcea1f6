"""What tokens of a run's model cost."""

from dataclasses import dataclass

from services.results.outcomes.outcome import TokenUsage

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
