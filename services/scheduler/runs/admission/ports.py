"""The stored queue."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from services.scheduler.runs.admission.run_estimate import History
from services.scheduler.runs.admission.run_queue import QueuedRuns
from services.scheduler.runs.lifecycle.run import RunId


class QueueStore(Protocol):
    """The queue, to be looked at."""

    async def queue(self, most: int) -> QueuedRuns:
        """As of one moment, with at most so many waiting and as many paused runs."""
        ...

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        """1 is next; without those that do not wait."""
        ...

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> History:
        """The last completed ones of each suite and model."""
        ...
