"""Models as pools and their workers tell of them now, merged into one list with who was asked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.scheduler.workers.pool import Pool
from services.scheduler.workers.worker import Worker, loading_problem


@dataclass(frozen=True, slots=True)
class ListedModel:
    """What is None or empty nobody told; `problem`: why no worker can load it.

    `capabilities` are named as in the contract: "chat", "loglikelihood", …
    """

    name: str
    pool: str
    is_loaded: bool = False
    context_tokens: int | None = None
    size_bytes: int | None = None
    memory_bytes: int | None = None
    quantization: str = ""
    capabilities: frozenset[str] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PoolListing:
    """What a worker of a pool told; `problem` says why nothing, or not all, was told."""

    models: tuple[ListedModel, ...] = ()
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
    models: tuple[ListedModel, ...]
    sources: tuple[ModelSource, ...]


def merge_listings(
    pools: Sequence[Pool], workers: Sequence[Worker], listings: Mapping[str, PoolListing]
) -> ModelList:
    """By name. Where two pools tell of a model, it is that of the pool that an order for it goes to."""
    found: dict[str, ListedModel] = {}
    for pool in sorted(pools, key=lambda pool: pool.serves_any_model):
        for model in _models_of(pool, workers, listings[pool.name]):
            found.setdefault(model.name, model)
    sources = (_source(pool, listings[pool.name]) for pool in sorted(pools, key=lambda pool: pool.name))
    return ModelList(tuple(sorted(found.values(), key=lambda model: model.name)), tuple(sources))


def _models_of(pool: Pool, workers: Sequence[Worker], listing: PoolListing) -> Iterator[ListedModel]:
    """Those that the pool lists and its heartbeats name are known also where nobody answers."""
    registry = [worker for worker in workers if worker.pool == pool.name]
    told = {model.name: model for model in listing.models if pool.serves(model.name)}
    for name in dict.fromkeys((*pool.models, *_names_of(registry, pool), *told)):
        model = told.get(name, ListedModel(name, pool.name))
        yield replace(
            model,
            pool=pool.name,
            is_loaded=model.is_loaded or any(worker.answers_for(name) for worker in registry),
            problem=model.problem or loading_problem(name, pool.name, registry) or "",
        )


def _names_of(registry: Iterable[Worker], pool: Pool) -> Iterator[str]:
    return (name for worker in registry for name in worker.models if pool.serves(name))


def _source(pool: Pool, listing: PoolListing) -> ModelSource:
    provider = ", ".join(sorted(pool.providers))
    return ModelSource(pool.name, provider, pool.engine, listing.problem, listing.listed_at)
