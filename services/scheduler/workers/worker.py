"""Live workers as of their last heartbeats, and what a run still waits for from them."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import TypeVar

from proctor.values.providers.worker import EngineLoad, WorkerState

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """A run of which a provider refuses all requests in an epoch, and the provider's reason."""

    run_id: str
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker as of its last heartbeat. `cannot_load` maps a model to the engine's reason.

    `state` is None where the worker did not report one; `note` is for operators.

    `refusals` are of runs of which the provider refuses all requests.
    `ready_models` share the loaded engine; `loading_model` is loaded next; `load` is None if the engine runs
    elsewhere. `throttled_servers` maps a base URL of an order, or "" for the pool's own server, to the time
    at which requests are sent to it again.
    """

    worker_id: str
    pool: str
    engine: str
    provider: str = ""
    models: tuple[str, ...] = ()
    loaded_model: str = ""
    samples_in_flight: int = 0
    concurrency: int = 0
    state: WorkerState | None = None
    note: str = ""
    sent_at: datetime | None = None
    cannot_load: Mapping[str, str] = field(default_factory=dict)
    refusals: tuple[RefusedRun, ...] = ()
    loading_model: str = ""
    ready_models: tuple[str, ...] = ()
    load: EngineLoad | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    throttled_servers: Mapping[str, datetime] = field(default_factory=dict)
    # Empty outside of Kubernetes.
    pod: str = ""
    rollouts_in_flight: int = 0
    rollout_slots: int = 0

    def answers_for(self, model: str) -> bool:
        return model == self.loaded_model or model in self.ready_models


class PoolWorkers:
    """The live workers of a pool, with what the leader asks of them at each step added up by heartbeat.

    So a step costs the same however many workers there are. `concurrencies` counts the workers of each.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, Worker] = {}
        self.concurrencies: Counter[int] = Counter()
        self._cannot_load: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._refusals: defaultdict[tuple[str, int], dict[str, str]] = defaultdict(dict)

    def put(self, key: str, worker: Worker) -> None:
        self.drop(key)
        self.by_key[key] = worker
        self.concurrencies[worker.concurrency] += 1
        for model, reason in worker.cannot_load.items():
            self._cannot_load[model][key] = reason
        for refused in worker.refusals:
            self._refusals[refused.run_id, refused.epoch][key] = refused.reason

    def drop(self, key: str) -> None:
        worker = self.by_key.pop(key, None)
        if worker is None:
            return
        self.concurrencies -= Counter((worker.concurrency,))
        for model in worker.cannot_load:
            _forget(self._cannot_load, model, key)
        for refused in worker.refusals:
            _forget(self._refusals, (refused.run_id, refused.epoch), key)

    def loading_problem(self, model: str) -> str | None:
        """The engine's reason, if every live worker reports that it cannot load the model."""
        reasons = self._cannot_load.get(model, {})
        return next(iter(reasons.values()), None) if len(reasons) == len(self.by_key) else None

    def provider_refusal(self, run: str, epoch: int) -> str | None:
        """The provider's reason for refusing a run, as one worker got it: all workers use the same key."""
        reasons = self._refusals.get((run, epoch), {})
        return next((reason for reason in reasons.values() if reason), None)


def _forget(reported: dict[Name, dict[str, str]], name: Name, key: str) -> None:
    # A heartbeat may report a name twice.
    of_name = reported.get(name, {})
    of_name.pop(key, None)
    if not of_name:
        reported.pop(name, None)


class WorkerTable:
    """The live workers by pool; a pool without any is not listed."""

    def __init__(self, workers: Iterable[Worker] = ()) -> None:
        self._pools: dict[str, PoolWorkers] = {}
        for worker in workers:
            self.put(f"{worker.pool} {worker.worker_id}", worker)

    def put(self, key: str, worker: Worker) -> None:
        self._pools.setdefault(worker.pool, PoolWorkers()).put(key, worker)

    def drop(self, key: str, pool: str) -> None:
        workers = self._pools.get(pool)
        if workers is not None:
            workers.drop(key)
            if not workers.by_key:
                del self._pools[pool]

    def pool(self, name: str) -> PoolWorkers:
        return self._pools.get(name) or PoolWorkers()

    @property
    def pools(self) -> frozenset[str]:
        return frozenset(self._pools)

    def workers(self) -> Sequence[Worker]:
        """Workers in the order of their keys."""
        found = [entry for pool in self._pools.values() for entry in pool.by_key.items()]
        return [worker for _, worker in sorted(found, key=itemgetter(0))]


def engine_facts(model: str, base_url: str, pool: str, workers: Sequence[Worker]) -> Mapping[str, str]:
    """Facts of the engine, without the hardware, from the live workers that can answer for the model.

    Empty if no worker reports anything, or if reports differ: then it is open which engine will answer.
    """
    server = {"base_url": base_url} if base_url else {}
    reported = [
        {name: fact for name, fact in worker.environment.items() if name != "hardware"} | server
        for worker in workers
        if worker.pool == pool and worker.environment and _can_answer(worker, model)
    ]
    return reported[0] if reported and all(facts == reported[0] for facts in reported) else {}


def _can_answer(worker: Worker, model: str) -> bool:
    """A worker of a provider serves all of its models and loads none."""
    return not worker.loaded_model or worker.answers_for(model)


def awaited_worker(model: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """Why a run waits, such as "loading vllm/x"; None if a worker of the pool serves the model now."""
    live = [worker for worker in workers if worker.pool == pool]
    if any(not worker.models or worker.answers_for(model) for worker in live):
        return None
    if any(worker.loading_model == model for worker in live):
        return f"loading {model}"
    others = sorted({worker.loading_model or worker.loaded_model for worker in live} - {""})
    if not others:
        return f"waiting for a worker of pool {pool}"
    if len(live) == 1:
        return f"waiting for the worker of pool {pool}, which has {others[0]} loaded"
    return f"waiting for one of {len(live)} workers of pool {pool}, which have {', '.join(others)} loaded"


def awaited_server(base_url: str, pool: str, workers: Sequence[Worker]) -> str | None:
    """The throttled server that a run waits for; an empty `base_url` is the pool's own. None if none is."""
    throttled = {
        worker.throttled_servers[base_url]: worker.provider
        for worker in workers
        if worker.pool == pool and base_url in worker.throttled_servers
    }
    if not throttled:
        return None
    until = max(throttled)
    server = base_url or throttled[until]
    return f"waiting for {server}: it throttles requests, and is asked again at {until:%H:%M:%S} UTC"
