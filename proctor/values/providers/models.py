"""Facts about a model, the state of a worker, and facts about the engine that serves it."""

from dataclasses import dataclass
from datetime import datetime

from proctor.values.contract_enum import ContractEnum

# Time for a worker's requests in flight when it stops, unless its setting says otherwise.
DEFAULT_DRAIN_SECONDS = 20.0


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


class WorkerState(ContractEnum):
    """Only a worker that is ready answers samples. One that is draining takes no more shards."""

    LOADING = "loading", 1
    READY = "ready", 2
    DRAINING = "draining", 3
    NOT_LOADED = "not_loaded", 4


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine is; counts are since it started, `kv_cache_usage` is a share from 0 to 1."""

    running_requests: int = 0
    waiting_requests: int = 0
    kv_cache_usage: float = 0.0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    generated_tokens: int = 0
