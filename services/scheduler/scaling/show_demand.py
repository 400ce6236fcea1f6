"""Shows the demand of a pool to KEDA and as metrics. Every replica gives the same answer."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from proctor.values.providers.pool import Pool
from services.common.checked_fields import invalid_field
from services.common.clock import Clock
from services.common.errors import DependencyUnavailable
from services.scheduler import metrics
from services.scheduler.scaling.plan_workers import models_of
from services.scheduler.scaling.pool_demand import PoolDemand
from services.scheduler.scaling.ports import DemandStore, StoredDemands

# An older figure may be wrong, and an autoscaler that gets none leaves the workers as they are.
_MAX_AGE = timedelta(seconds=60)
# KEDA makes three calls for each pool and poll, and all get one answer.
_READ_SECONDS = 1.0


class DemandNotComputed(DependencyUnavailable):
    """No scheduler has computed in the last minute what pool {pool} needs. See the log of their leader."""


@dataclass(slots=True)
class ShowDemand:
    """Callers within a second share what was read."""

    pools: Sequence[Pool]
    store: DemandStore
    clock: Clock
    _read: StoredDemands = field(init=False, default_factory=StoredDemands)
    _read_at: float = field(init=False, default=float("-inf"))

    async def show(self, pool: str) -> PoolDemand:
        """Raises `InvalidParameter` for an unknown pool, and `DemandNotComputed` where none is current."""
        names = [each.name for each in self.pools]
        if pool not in names:
            raise invalid_field("pool", f"of the trigger's metadata is one of {', '.join(names)}")
        stored = await self._stored()
        if pool not in stored.by_pool or not self._is_current(stored):
            raise DemandNotComputed(pool=pool)
        return stored.by_pool[pool]

    async def watch_activations(
        self, pool: str, pause: Callable[[], AsyncIterator[None]]
    ) -> AsyncIterator[PoolDemand]:
        """The demand each time that a pool which needed no worker needs one; looks again after each pause."""
        was_active = False
        async for _ in pause():
            try:
                demand = await self.show(pool)
            # A stream that ends makes KEDA reconnect with growing pauses; silence is harmless.
            except DependencyUnavailable:
                continue
            if demand.is_active and not was_active:
                yield demand
            was_active = demand.is_active

    async def report(self) -> None:
        """Sets the metrics; a figure that is not current is not shown."""
        stored = await self._stored()
        is_current = self._is_current(stored)
        for pool in self.pools:
            demand = stored.by_pool.get(pool.name)
            if demand is None or not is_current:
                # An absent series alerts; a stale number looks like a healthy one.
                _hide(pool)
            else:
                _show(pool, demand)

    async def _stored(self) -> StoredDemands:
        now = self.clock.monotonic()
        if now - self._read_at >= _READ_SECONDS:
            self._read = await self.store.demands()
            self._read_at = now
        return self._read

    def _is_current(self, stored: StoredDemands) -> bool:
        return stored.computed_at is not None and self.clock.now() - stored.computed_at <= _MAX_AGE


def _show(pool: Pool, demand: PoolDemand) -> None:
    metrics.WORKERS_DESIRED.labels(pool.name).set(demand.workers)
    for model in models_of(pool):
        metrics.BACKLOG_SAMPLES.labels(pool.name, model).set(demand.backlog_samples.get(model, 0.0))
        seconds = demand.backlog_seconds(model)
        if seconds is not None:
            metrics.BACKLOG_SECONDS.labels(pool.name, model).set(seconds)


def _hide(pool: Pool) -> None:
    metrics.WORKERS_DESIRED.remove(pool.name)
    for model in models_of(pool):
        metrics.BACKLOG_SAMPLES.remove(pool.name, model)
        metrics.BACKLOG_SECONDS.remove(pool.name, model)
