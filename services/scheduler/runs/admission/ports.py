"""The stored queue, and the slots that the leader assigns."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from proctor.values.run import RunId
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.runs.admission.run_estimate import History
from services.scheduler.runs.admission.run_queue import QueuedRuns
from services.scheduler.runs.admission.run_slots import SlotChanges


class QueueStore(Protocol):
    """Reads the queue."""

    async def queue(self, most: int) -> QueuedRuns:
        """The queue at one moment, with at most so many waiting and as many paused runs."""
        ...

    async def positions(self, runs: Sequence[RunId]) -> Mapping[RunId, int]:
        """Positions of pending runs; the next run to start has 1."""
        ...

    async def past_runs(self, wanted: Collection[tuple[str, str]]) -> History:
        """The last completed runs of each suite and model."""
        ...


class SlotStore(Protocol):
    """Assigns slots. Writes raise `LeadershipLost` once another scheduler leads."""

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
        """Starts the runs that come next under the limits of this moment, and preempts others for them."""
        ...

    async def forget_admissions(self, token: FencingToken, before: datetime) -> None:
        """Forgets old admissions of users who have no runs in the queue."""
        ...
