"""Facts about a model."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """Kinds of requests that each model of an engine supports. `logprobs` are those of generated tokens."""

    chat: bool = False
    completion: bool = False
    loglikelihood: bool = False
    constrained: bool = False
    seed: bool = False
    logprobs: bool = False
    images: bool = False


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as "provider/name". None and "" mean unknown.

    `memory_bytes` is what serving it takes; `problem` is why it cannot be loaded, in one sentence;
    `created_at` is when its provider made it, or when its weights were written.
    """

    model: str
    pool: str = ""
    is_loaded: bool = False
    context_tokens: int | None = None
    size_bytes: int | None = None
    memory_bytes: int | None = None
    quantization: str = ""
    capabilities: ModelCapabilities | None = None
    problem: str = ""
    created_at: datetime | None = None
