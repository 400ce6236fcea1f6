"""Requests and answers of every engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from proctor.values.making.quickly_made import quickly_made
from proctor.values.outcome import Answer
from proctor.values.usage import Timing, TokenUsage

# An answer has at most 4 MB as UTF-8: with its batch it stays below the 8 MiB of a NATS message.
MAX_ANSWER_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sampling:
    """None leaves a parameter to the engine; for suites `max_tokens` and `temperature` are always set."""

    max_tokens: int | None
    # The name by which a row limits its answer where it is the newer one.
    max_tokens_name: str = field(default="", kw_only=True)
    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    repetition_penalty: float | None = None
    # The context window to request from engines that size it per request.
    context_tokens: int | None = None
    truncate_left: bool = False
    # Streaming over HTTP measures the time to the first token; the answer is the same.
    is_streamed: bool = False
    # If set, exactly one of them is generated.
    allowed_texts: tuple[str, ...] = ()
    # The run's provider parameters, by the provider's own names.
    extra: Mapping[str, object] = field(default_factory=dict)
    # Further parameters of a data set's row, named as in the OpenAI protocol; they win over `extra`.
    row_extra: Mapping[str, object] = field(default_factory=dict)
    # The request is for a row of a data set: unset parameters take the model's own defaults, and an answer
    # that is more than a text is kept whole.
    is_row: bool = False
    _without_stops: Self | None = field(default=None, init=False, compare=False, repr=False)

    def without_stops(self) -> Self:
        """Made once: all samples of a shard share it, and a copy takes longer than reading an answer."""
        if self._without_stops is None:
            object.__setattr__(self, "_without_stops", replace(self, stop=()))
        assert self._without_stops is not None
        return self._without_stops

    def named(self, names: Mapping[str, str]) -> dict[str, object]:
        """The parameters that are set; `names` maps a field to its name at the provider."""
        return {
            name: value
            for field_name, name in names.items()
            if (value := getattr(self, field_name)) is not None and value != ()
        }


@quickly_made
@dataclass(frozen=True, slots=True)
class EngineResponse:
    """The answer to one request, with its tokens and times."""

    answer: Answer
    usage: TokenUsage
    timing: Timing


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The dimensions that decide the size of a model's key-value cache; 0 is unknown."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden_size: int

    def cache_bytes(self, context_tokens: int, bytes_per_value: int) -> int:
        """2 (keys and values) × layers × kv heads × head dim × context × bytes of a value; 0 is unknown.

        The least cache that serves one request of full length, or more where some layers look back less far.
        """
        head_dim = self.head_dim or (self.hidden_size // self.heads if self.heads else 0)
        return 2 * self.layers * self.kv_heads * head_dim * context_tokens * bytes_per_value
