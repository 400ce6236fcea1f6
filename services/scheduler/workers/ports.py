"""What the scheduler reads from workers."""

from collections.abc import Sequence
from typing import Protocol

from services.scheduler.workers.listed_models import PoolListing
from services.scheduler.workers.worker import Worker


class WorkerRegistry(Protocol):
    """Live workers, as far as heard."""

    def workers(self) -> Sequence[Worker]: ...


class ModelLists(Protocol):
    """What pools tell of their models now."""

    async def of_pool(self, pool: str) -> PoolListing:
        """Within a time of its own; what keeps it from being told is told instead."""
        ...
