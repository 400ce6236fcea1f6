"""The port by which live workers are read."""

from collections.abc import Sequence
from typing import Protocol

from services.scheduler.workers.worker import Worker, WorkerTable


class WorkerRegistry(Protocol):
    """Live workers, by their heartbeats."""

    def workers(self) -> Sequence[Worker]: ...

    def table(self) -> WorkerTable:
        """The same by pool, kept up to date by each heartbeat; it is read, not changed."""
        ...
