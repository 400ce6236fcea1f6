"""The models that pools and their workers list, merged into one list with its sources."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from proctor.values.pools import Pool
from proctor.values.providers import ModelInfo
from services.scheduler.workers.pool import model_names
from services.scheduler.workers.worker import Worker, loading_problem


@dataclass(frozen=True, slots=True)
class PoolListing:
    """What a worker of a pool listed; `problem` says why it listed nothing, or not everything."""

    models: tuple[ModelInfo, ...] = ()
    problem: str = ""
    listed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A pool that was asked for its models."""

    pool: str
    provider: str
    engine: str
    problem: str = ""
    listed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ModelList:
    models: tuple[ModelInfo, ...]
    sources: tuple[ModelSource, ...]


def merge_listings(
    pools: Sequence[Pool], workers: Sequence[Worker], listings: Mapping[str, PoolListing]
) -> ModelList:
    """Sorted by name. If two pools list a model, it is that of the pool that an order for it goes to."""
    found: dict[str, ModelInfo] = {}
    for pool in sorted(pools, key=lambda pool: pool.serves_any_model):
        for model in _models_of(pool, workers, listings[pool.name]):
            found.setdefault(model.model, model)
    sources = (_source(pool, listings[pool.name]) for pool in sorted(pools, key=lambda pool: pool.name))
    return ModelList(tuple(sorted(found.values(), key=lambda model: model.model)), tuple(sources))


def _models_of(pool: Pool, workers: Sequence[Worker], listing: PoolListing) -> Iterator[ModelInfo]:
    """Models that the pool or its heartbeats name are listed even if no worker answers."""
    live = [worker for worker in workers if worker.pool == pool.name]
    listed = {model.model: model for model in listing.models if pool.serves(model.model)}
    for name in dict.fromkeys((*model_names([pool]), *_names_of(live, pool), *listed)):
        model = listed.get(name, ModelInfo(name, pool.name))
        yield replace(
            model,
            pool=pool.name,
            is_loaded=model.is_loaded or any(worker.answers_for(name) for worker in live),
            problem=model.problem or loading_problem(name, pool.name, live) or "",
        )


def _names_of(workers: Iterable[Worker], pool: Pool) -> Iterator[str]:
    return (name for worker in workers for name in worker.models if pool.serves(name))


def _source(pool: Pool, listing: PoolListing) -> ModelSource:
    provider = ", ".join(sorted(pool.providers))
    return ModelSource(pool.name, provider, pool.engine, listing.problem, listing.listed_at)
