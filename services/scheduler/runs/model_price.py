"""What tokens of a model cost."""

from dataclasses import dataclass

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """`cached_tokens` are a part of the prompt's, `reasoning_tokens` a part of those generated."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Of a million tokens each; prompt tokens from the provider's cache cost as others where unset."""

    input_per_million: float
    output_per_million: float
    cached_input_per_million: float | None = None
    currency: str = "USD"

    @property
    def is_above_zero(self) -> bool:
        return any((self.input_per_million, self.output_per_million, self.cached_input_per_million))

    def cost(self, usage: TokenUsage) -> float:
        """In the currency of the price."""
        cached = (
            self.input_per_million if self.cached_input_per_million is None else self.cached_input_per_million
        )
        fresh_tokens = max(usage.prompt_tokens - usage.cached_tokens, 0)
        prompt = fresh_tokens * self.input_per_million + usage.cached_tokens * cached
        return (prompt + usage.completion_tokens * self.output_per_million) / _MILLION
