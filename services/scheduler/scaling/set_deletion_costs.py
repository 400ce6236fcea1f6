"""The leader sets deletion costs of the pods of workers: a pool that shrinks loses the emptiest first."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from proctor.values.providers.pool import Pool
from services.common.structured_logs import get_logger
from services.scheduler.scaling.ports import DemandStore
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.worker import Worker

log = get_logger()

_ROUND_SECONDS = 5.0
_BACKOFF_SECONDS = 60.0


class PodCosts(Protocol):
    async def put(self, pod: str, cost: int) -> None:
        """Sets the deletion cost of a pod. A pod that is gone is passed over."""
        ...


def deletion_costs(workers: Iterable[Worker]) -> Mapping[str, int]:
    """The cost of each pod: 0 if its worker does nothing, and one more with each doubling of its requests.

    A rollout counts as twice all that a worker asks concurrently, because it begins anew elsewhere. Steps
    that coarse change rarely: Kubernetes asks for few changes of the cost.
    """
    return {
        worker.pod: (
            worker.samples_in_flight + 2 * worker.rollouts_in_flight * worker.concurrency
        ).bit_length()
        for worker in workers
        if worker.pod
    }


@dataclass(slots=True)
class SetDeletionCosts:
    """Sets those of pools that have more workers than they need; others lose none.

    Keeps which costs it has set. A pool that needs no worker loses all of them, in whatever order.
    """

    pools: Sequence[Pool]
    registry: WorkerRegistry
    store: DemandStore
    costs: PodCosts
    _costs_of: dict[str, int] = field(init=False, default_factory=dict)

    async def lead(self) -> NoReturn:
        while True:
            try:
                await self.set()
            except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
                log.warning("deletion costs not set", error=str(error) or repr(error))
                await asyncio.sleep(_BACKOFF_SECONDS)
            await asyncio.sleep(_ROUND_SECONDS)

    async def set(self) -> None:
        """Sets the costs that have changed. What the adapter raises leaves the rest to the next round."""
        demands = (await self.store.demands()).by_pool
        table = self.registry.table()
        live = {worker.pod for worker in self.registry.workers()}
        for pod in self._costs_of.keys() - live:
            del self._costs_of[pod]
        for pool in self.pools:
            workers = list(table.pool(pool.name).by_key.values())
            demand = demands.get(pool.name)
            if demand is None or not 0 < demand.workers < len(workers):
                continue
            for pod, cost in deletion_costs(workers).items():
                if self._costs_of.get(pod) != cost:
                    await self.costs.put(pod, cost)
                    self._costs_of[pod] = cost
