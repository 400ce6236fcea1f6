"""What the scheduler reads from workers."""

from collections.abc import Sequence
from typing import Protocol

from services.scheduler.workers.listed_models import PoolListing
from services.scheduler.workers.worker import Worker


class WorkerRegistry(Protocol):
    """Live workers, by their heartbeats."""

    def workers(self) -> Sequence[Worker]: ...


class ModelLists(Protocol):
    """The models that pools list now."""

    async def of_pool(self, pool: str) -> PoolListing:
        """Returns within a time limit; a listing that fails names the problem."""
        ...
