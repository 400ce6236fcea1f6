"""Parameters of generation, and what a number of an order may be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

# For a task that names no limit, as in lm-evaluation-harness.
DEFAULT_MAX_TOKENS = 256


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """A field that is None takes the task's value, then the engine's default.

    `provider_params` are handed to the provider unchanged.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    context_tokens: int | None = None
    provider_params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """A field of an order and what is wrong with it, as a sentence."""

    field: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Range:
    """The range from `lowest` to `highest`, both included; `above` excludes the lower end."""

    field: str
    lowest: float
    highest: float = math.inf
    above: bool = False
    advice: str = ""

    def problem(self, value: float | None) -> Problem | None:
        if value is None or self._contains(value):
            return None
        allowed = self._allowed() if math.isfinite(value) else "must be a finite number"
        return Problem(self.field, f"{self.field} is {value}, but {allowed}.{self.advice}")

    def narrowed_to(self, other: "Range") -> "Range":
        """The values that are in both ranges."""
        return replace(self, lowest=max(self.lowest, other.lowest), highest=min(self.highest, other.highest))

    def _contains(self, value: float) -> bool:
        is_high_enough = value > self.lowest if self.above else value >= self.lowest
        return math.isfinite(value) and is_high_enough and value <= self.highest

    def _allowed(self) -> str:
        bound = f"must be {'above' if self.above else 'at least'} {self.lowest:g}"
        return bound if math.isinf(self.highest) else f"{bound} and at most {self.highest:.10g}"


# Values that an order may have, by the fields of GenerationParams. Providers allow less.
PARAMETER_RANGES: Mapping[str, Range] = MappingProxyType(
    {
        limits.field: limits
        for limits in (
            Range("temperature", 0, 2),
            Range("top_p", 0, 1),
            Range("top_k", 0, 100),
            Range("max_tokens", 1),
            Range("seed", 0),
            Range("repetition_penalty", 0, above=True),
            Range("context_tokens", 1),
        )
    }
)
