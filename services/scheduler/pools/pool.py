"""Pools and their workers: which models can be examined, by whom, and how much they take at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from services.scheduler.pools.base_urls import BaseUrl
from services.scheduler.runs.run_order import PromptForm, RunOrder, ScoringMethod

_SAYS_GIVEN_TEXTS = frozenset({ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED})
# How each engine can score choices; behind the OpenAI protocol a pool has to say what constrains an answer.
METHODS_OF: Mapping[str, frozenset[ScoringMethod]] = MappingProxyType(
    {
        "vllm": frozenset(ScoringMethod),
        "openai": frozenset({ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE}),
        "ollama": _SAYS_GIVEN_TEXTS,
        "gemini": _SAYS_GIVEN_TEXTS,
        "anthropic": frozenset({ScoringMethod.GENERATE}),
    }
)
_CHAT_ONLY = frozenset({"gemini", "anthropic"})


@dataclass(frozen=True, slots=True)
class Pool:
    """Serves the `models` it lists, or any model of its `provider`; `can` holds the ways to score choices.

    `base_url` is its provider's server; `may_ask` are those that an order may name instead.
    """

    name: str
    engine: str
    concurrency: int
    models: tuple[str, ...] = ()
    provider: str = ""
    can: frozenset[ScoringMethod] = METHODS_OF["openai"]
    base_url: str = ""
    may_ask: tuple[BaseUrl, ...] = ()

    @property
    def providers(self) -> frozenset[str]:
        if self.provider:
            return frozenset({self.provider})
        return frozenset(model.partition("/")[0] for model in self.models)

    @property
    def serves_any_model(self) -> bool:
        return bool(self.provider)

    @property
    def can_truncate(self) -> bool:
        """Prompts are cut in tokens, which only an engine in the worker itself counts."""
        return self.engine == "vllm"

    @property
    def can_complete(self) -> bool:
        """Whether a plain text can be continued as it is."""
        return self.engine not in _CHAT_ONLY

    def scoring_methods(self, prompt_form: PromptForm | None) -> tuple[ScoringMethod, ...]:
        """The ways to score choices that were put so, the preferred one first."""
        return tuple(method for method in ScoringMethod if self._can_score(method, prompt_form))

    def _can_score(self, method: ScoringMethod, prompt_form: PromptForm | None) -> bool:
        """A server behind HTTP scores no given text after a chat: the template is written on its side."""
        is_text_after_chat = method is ScoringMethod.LOGLIKELIHOOD and prompt_form is PromptForm.CHAT
        return method in self.can and (self.engine == "vllm" or not is_text_after_chat)

    def serves(self, model: str) -> bool:
        provider, _, name = model.partition("/")
        return model in self.models or (provider == self.provider and bool(name))


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine in a worker is; counts are of the engine's life."""

    running_requests: int = 0
    waiting_requests: int = 0
    kv_cache_usage: float = 0.0
    prefix_cache_queries: int = 0
    prefix_cache_hits: int = 0
    generated_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker, from its last heartbeat. `cannot_load` maps a model to the engine's own reason.

    `refused_runs` maps "run/epoch" to the provider's reason for taking no request of that run.
    `ready_models` share the loaded engine; `loading_model` is what it turns to; `load` is None where the
    engine runs elsewhere. `throttled_servers` maps the base URL that an order named, empty for the pool's own
    server, to when requests go there again: it said to come back later.
    """

    worker_id: str
    pool: str
    engine: str
    provider: str = ""
    models: tuple[str, ...] = ()
    loaded_model: str = ""
    in_flight: int = 0
    concurrency: int = 0
    condition: str = ""
    sent_at: datetime | None = None
    cannot_load: Mapping[str, str] = field(default_factory=dict)
    refused_runs: Mapping[str, str] = field(default_factory=dict)
    loading_model: str = ""
    ready_models: tuple[str, ...] = ()
    load: EngineLoad | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    throttled_servers: Mapping[str, datetime] = field(default_factory=dict)

    def answers_for(self, model: str) -> bool:
        return model == self.loaded_model or model in self.ready_models


def supported_providers(pools: Iterable[Pool]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*(pool.providers for pool in pools))))


def pool_of(model: str, pools: Iterable[Pool]) -> Pool | None:
    """The first pool that serves the model; one that lists it comes before one that serves any."""
    by_list_first = sorted(pools, key=lambda pool: pool.serves_any_model)
    return next((pool for pool in by_list_first if pool.serves(model)), None)


def why_no_worker_can_load(model: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """The engine's reason, once every live worker of the pool says that it cannot load the model."""
    crew = [worker for worker in workers if worker.pool == pool]
    reasons = [worker.cannot_load[model] for worker in crew if model in worker.cannot_load]
    return reasons[0] if reasons and len(reasons) == len(crew) else None


def why_provider_refuses(run: str, epoch: int, workers: Sequence[Worker]) -> str | None:
    """The provider's reason, from the first worker that met it: all workers ask with the same key."""
    told = (worker.refused_runs.get(f"{run}/{epoch}") for worker in workers)
    return next((reason for reason in told if reason), None)


def engine_facts(order: RunOrder, pool: str, workers: Sequence[Worker]) -> Mapping[str, str]:
    """What the live workers that have the model at hand say of their engine, where all say the same.

    Of no account is the hardware. Empty where nobody tells, or not all the same: it is open who will answer.
    """
    server = {"base_url": order.base_url} if order.base_url else {}
    told = [
        {name: fact for name, fact in worker.environment.items() if name != "hardware"} | server
        for worker in workers
        if worker.pool == pool and worker.environment and _has_at_hand(worker, order.model)
    ]
    return told[0] if told and all(facts == told[0] for facts in told) else {}


def _has_at_hand(worker: Worker, model: str) -> bool:
    """A worker of a provider has all its models, and loads none."""
    return not worker.loaded_model or worker.answers_for(model)
