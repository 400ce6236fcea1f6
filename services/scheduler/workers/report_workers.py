"""Shows the live workers of each pool as metrics."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.providers.pool import Pool
from services.scheduler import metrics
from services.scheduler.workers.worker import WorkerRegistry

_NOT_LOADED = "not loaded"
_CONDITIONS = ("ready", "loading", "draining", _NOT_LOADED)


@dataclass(frozen=True, slots=True)
class ReportWorkers:
    pools: Sequence[Pool]
    registry: WorkerRegistry

    def report(self) -> None:
        table = self.registry.table()
        for pool in self.pools:
            workers = table.pool(pool.name).by_key.values()
            counts = Counter(_condition(worker.condition) for worker in workers)
            for condition in _CONDITIONS:
                metrics.POOL_WORKERS.labels(pool.name, condition).set(counts[condition])
            metrics.POOL_IN_FLIGHT.labels(pool.name).set(sum(worker.in_flight for worker in workers))
            metrics.POOL_CONCURRENCY.labels(pool.name).set(sum(worker.concurrency for worker in workers))


def _condition(reported: str) -> str:
    """A sentence may follow the word, and an engine's reason may stand in its place."""
    word = reported.partition(";")[0]
    return word if word in _CONDITIONS else _NOT_LOADED
