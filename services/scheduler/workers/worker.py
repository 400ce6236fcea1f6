"""Live workers as of their last heartbeats, and what a run still waits for from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.scheduler.runs.orders.run_order import RunOrder


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


def loading_problem(model: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """The engine's reason, once every live worker of the pool says that it cannot load the model."""
    registry = [worker for worker in workers if worker.pool == pool]
    reasons = [worker.cannot_load[model] for worker in registry if model in worker.cannot_load]
    return reasons[0] if reasons and len(reasons) == len(registry) else None


def provider_refusal(run: str, epoch: int, workers: Sequence[Worker]) -> str | None:
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


def awaited_worker(model: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """Such as "loading vllm/x"; None where a worker of the pool answers for the model now."""
    registry = [worker for worker in workers if worker.pool == pool]
    if any(not worker.models or worker.answers_for(model) for worker in registry):
        return None
    if any(worker.loading_model == model for worker in registry):
        return f"loading {model}"
    others = sorted({worker.loading_model or worker.loaded_model for worker in registry} - {""})
    if not others:
        return f"waiting for a worker of pool {pool}"
    if len(registry) == 1:
        return f"waiting for the worker of pool {pool}, which has {others[0]} loaded"
    return f"waiting for one of {len(registry)} workers of pool {pool}, which have {', '.join(others)} loaded"


def awaited_server(base_url: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """Empty is the pool's own server. None where it did not say to come back later."""
    held = {
        worker.throttled_servers[base_url]: worker.provider
        for worker in workers
        if worker.pool == pool and base_url in worker.throttled_servers
    }
    if not held:
        return None
    until = max(held)
    server = base_url or held[until]
    return f"waiting for {server}: it said to come back later, and is asked again at {until:%H:%M:%S} UTC"
