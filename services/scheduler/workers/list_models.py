"""Lists the models that can be evaluated: asks all pools at once, waits for none of them for long."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from proctor.values.providers.models import ModelInfo
from proctor.values.providers.pool import Pool
from services.common.clock import Clock
from services.scheduler.workers.model_names import UnknownProvider, model_names, supported_providers
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import PoolWorkers, WorkerTable


@dataclass(frozen=True, slots=True)
class PoolListing:
    """Models that a worker of a pool listed; `problem` says why it listed nothing, or not everything.

    `has_key`: whether the worker has a key of the provider; None where none has answered.
    """

    models: tuple[ModelInfo, ...] = ()
    problem: str = ""
    listed_at: datetime | None = None
    has_key: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A pool that was asked for its models. `api_key_env` holds the provider's key in its workers."""

    pool: str
    provider: str
    engine: str
    problem: str = ""
    listed_at: datetime | None = None
    api_key_env: str = ""
    has_key: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelList:
    models: tuple[ModelInfo, ...]
    sources: tuple[ModelSource, ...]


def merge_listings(
    pools: Sequence[Pool], workers: WorkerTable, listings: Mapping[str, PoolListing]
) -> ModelList:
    """Sorted by name. If two pools list a model, it is that of the pool that an order for it goes to."""
    found: dict[str, ModelInfo] = {}
    for pool in sorted(pools, key=lambda pool: pool.serves_any_model):
        for model in _models_of(pool, workers.pool(pool.name), listings[pool.name]):
            found.setdefault(model.model, model)
    sources = (_source(pool, listings[pool.name]) for pool in sorted(pools, key=lambda pool: pool.name))
    return ModelList(tuple(sorted(found.values(), key=lambda model: model.model)), tuple(sources))


def _models_of(pool: Pool, workers: PoolWorkers, listing: PoolListing) -> Iterator[ModelInfo]:
    """Models that the pool or its heartbeats name are listed even if no worker answers."""
    live = workers.by_key.values()
    listed = {model.model: model for model in listing.models if pool.serves(model.model)}
    named = (name for worker in live for name in worker.models if pool.serves(name))
    for name in dict.fromkeys((*model_names([pool]), *named, *listed)):
        model = listed.get(name, ModelInfo(name, pool.name))
        yield replace(
            model,
            pool=pool.name,
            is_loaded=model.is_loaded or any(worker.answers_for(name) for worker in live),
            problem=model.problem or workers.loading_problem(name) or "",
        )


def _source(pool: Pool, listing: PoolListing) -> ModelSource:
    provider = ", ".join(sorted(pool.providers))
    return ModelSource(
        pool=pool.name,
        provider=provider,
        engine=pool.engine,
        problem=listing.problem,
        listed_at=listing.listed_at,
        api_key_env=pool.provider.api_key_env if pool.provider else "",
        has_key=listing.has_key,
    )


class ModelLists(Protocol):
    """The models that pools list now."""

    async def of_pool(self, pool: str) -> PoolListing:
        """Returns within a time limit; a listing that fails names the problem."""
        ...


@dataclass(frozen=True, slots=True)
class ListingRules:
    """How long a caller waits for a pool, and how long a listing is reused."""

    wait_seconds: float
    keep_seconds: float = 20.0
    keep_problem_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class _Kept:
    listing: PoolListing
    until: float


@dataclass(frozen=True, slots=True)
class ListModels:
    """Concurrent callers share one request per pool; a late listing serves the next caller."""

    pools: Sequence[Pool]
    registry: WorkerRegistry
    lists: ModelLists
    clock: Clock
    rules: ListingRules
    _kept: dict[str, _Kept] = field(init=False, default_factory=dict)
    _asking: dict[str, asyncio.Task[None]] = field(init=False, default_factory=dict)

    async def list_models(self, provider: str = "") -> ModelList:
        """Lists the models of one provider or of all. Others may be ordered all the same."""
        pools = [pool for pool in self.pools if not provider or provider in pool.providers]
        if not pools:
            supported = ", ".join(supported_providers(self.pools))
            raise UnknownProvider(provider=provider, advice="", supported=supported)
        merged = merge_listings(pools, self.registry.table(), await self._listings(pools))
        if not provider:
            return merged
        models = tuple(model for model in merged.models if model.model.startswith(f"{provider}/"))
        return replace(merged, models=models)

    async def close(self) -> None:
        asking = tuple(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _listings(self, pools: Sequence[Pool]) -> dict[str, PoolListing]:
        began = self.clock.monotonic()
        stale = [pool.name for pool in pools if self._fresh(pool.name, began) is None]
        wait = self.rules.wait_seconds
        if stale:
            await asyncio.wait([self._ask_once(pool) for pool in stale], timeout=wait)
        late = PoolListing(
            problem=f"No answer within {wait:g} s; it is still waited for, so look again soon."
        )
        return {pool.name: self._fresh(pool.name, began) or late for pool in pools}

    def _fresh(self, pool: str, now: float) -> PoolListing | None:
        kept = self._kept.get(pool)
        return kept.listing if kept is not None and now < kept.until else None

    def _ask_once(self, pool: str) -> asyncio.Task[None]:
        if pool not in self._asking:
            self._asking[pool] = asyncio.create_task(self._ask(pool), name=f"list models of {pool}")
        return self._asking[pool]

    async def _ask(self, pool: str) -> None:
        try:
            listing = await self.lists.of_pool(pool)
        finally:
            del self._asking[pool]
        keep = self.rules.keep_problem_seconds if listing.problem else self.rules.keep_seconds
        self._kept[pool] = _Kept(listing, self.clock.monotonic() + keep)
