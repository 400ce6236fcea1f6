"""Lists the models that can be examined: asks all pools at once, waits for none of them for long."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proctor.values.pools import Pool
from services.common.clock import Clock
from services.scheduler.workers.errors import UnknownProvider
from services.scheduler.workers.listed_models import ModelList, PoolListing, merge_listings
from services.scheduler.workers.pool import supported_providers
from services.scheduler.workers.ports import ModelLists, WorkerRegistry


@dataclass(frozen=True, slots=True)
class ListingRules:
    """How long a caller waits for a pool, and how long a listing is reused."""

    wait_seconds: float = 2.0
    keep_seconds: float = 20.0
    keep_problem_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class _Kept:
    listing: PoolListing
    until: float


class ListModels:
    """Concurrent callers share one request per pool; a late listing serves the next caller."""

    def __init__(
        self,
        pools: Sequence[Pool],
        registry: WorkerRegistry,
        lists: ModelLists,
        clock: Clock,
        rules: ListingRules,
    ) -> None:
        self._pools = pools
        self._registry = registry
        self._lists = lists
        self._clock = clock
        self._rules = rules
        self._kept: dict[str, _Kept] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def list_models(self, provider: str = "") -> ModelList:
        """Lists the models of one provider or of all. Others may be ordered all the same."""
        pools = [pool for pool in self._pools if not provider or provider in pool.providers]
        if not pools:
            supported = ", ".join(supported_providers(self._pools))
            raise UnknownProvider(provider=provider, advice="", supported=supported)
        merged = merge_listings(pools, self._registry.workers(), await self._listings(pools))
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
        began = self._clock.monotonic()
        stale = [pool.name for pool in pools if self._fresh(pool.name, began) is None]
        wait = self._rules.wait_seconds
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
            listing = await self._lists.of_pool(pool)
        finally:
            del self._asking[pool]
        keep = self._rules.keep_problem_seconds if listing.problem else self._rules.keep_seconds
        self._kept[pool] = _Kept(listing, self._clock.monotonic() + keep)
