"""Shows the live workers of each pool as metrics."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.providers.pool import Pool
from proctor.values.providers.worker import WorkerState
from services.scheduler import metrics
from services.scheduler.workers.ports import WorkerRegistry


@dataclass(frozen=True, slots=True)
class ReportWorkers:
    pools: Sequence[Pool]
    registry: WorkerRegistry

    def report(self) -> None:
        table = self.registry.table()
        for pool in self.pools:
            workers = table.pool(pool.name).by_key.values()
            counts = Counter(worker.state for worker in workers)
            for state in WorkerState:
                metrics.POOL_WORKERS.labels(pool.name, state).set(counts[state])
            metrics.POOL_SAMPLES_IN_FLIGHT.labels(pool.name).set(
                sum(worker.samples_in_flight for worker in workers)
            )
            metrics.POOL_CONCURRENCY.labels(pool.name).set(sum(worker.concurrency for worker in workers))
