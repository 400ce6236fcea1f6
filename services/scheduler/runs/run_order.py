"""What a user orders: one model over one suite, and what may be asked of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

MAX_ROLLOUTS = 100
MAX_FEWSHOT = 100


class Priority(IntEnum):
    """Who goes first when the limits hold runs back; the lower number does."""

    HIGH = 1
    NORMAL = 2
    LOW = 3


class ScoringMethod(StrEnum):
    LOGLIKELIHOOD = "loglikelihood"
    GENERATE = "generate"
    CONSTRAINED = "constrained"


class Truncation(StrEnum):
    NONE = "none"
    LEFT = "left"


class PromptForm(StrEnum):
    COMPLETION = "completion"
    CHAT = "chat"


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """What a field leaves unset is the task's value, then the engine's."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    context_tokens: int | None = None
    provider_params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunOrder:
    """`tasks` empty means all; `limit` takes the first rows of each; what is unset the scheduler chooses."""

    suite: str
    model: str
    project_id: int = 0
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    num_fewshot: int | None = None
    rollouts: int = 1
    priority: Priority = Priority.HIGH
    params: GenerationParams = GenerationParams()
    scoring_method: ScoringMethod | None = None
    truncation: Truncation = Truncation.NONE
    prompt_form: PromptForm | None = None

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Problem:
    """A field of an order and what is wrong with it, as a sentence."""

    field: str
    sentence: str


@dataclass(frozen=True, slots=True)
class _Range:
    """What a number may be; `above` leaves the lower end out."""

    field: str
    lowest: float
    highest: float = math.inf
    above: bool = False
    advice: str = ""

    def problem(self, value: float | None) -> Problem | None:
        if value is None or self._holds(value):
            return None
        return Problem(self.field, f"{self.field} is {value}, but {self._allowed()}.{self.advice}")

    def _holds(self, value: float) -> bool:
        is_high_enough = value > self.lowest if self.above else value >= self.lowest
        return math.isfinite(value) and is_high_enough and value <= self.highest

    def _allowed(self) -> str:
        least = f"{'above' if self.above else 'at least'} {self.lowest:g}"
        return (
            f"must be {least}"
            if math.isinf(self.highest)
            else f"must be {least} and at most {self.highest:g}"
        )


_ALL_ROWS = " Leave it out to take all rows."


def first_problem(order: RunOrder) -> Problem | None:
    """The first number of an order that is out of its range."""
    params = order.params
    checks = (
        (_Range("project_id", 0), order.project_id),
        (_Range("limit", 1, advice=_ALL_ROWS), order.limit),
        (_Range("num_fewshot", 0, MAX_FEWSHOT), order.num_fewshot),
        (_Range("rollouts", 1, MAX_ROLLOUTS), order.rollouts),
        (_Range("temperature", 0, 2), params.temperature),
        (_Range("top_p", 0, 1), params.top_p),
        (_Range("top_k", 0, 100), params.top_k),
        (_Range("max_tokens", 1), params.max_tokens),
        (_Range("seed", 0), params.seed),
        (_Range("repetition_penalty", 0, above=True), params.repetition_penalty),
        (_Range("context_tokens", 1), params.context_tokens),
    )
    return next((problem for range_, value in checks if (problem := range_.problem(value))), None)
