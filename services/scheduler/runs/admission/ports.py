"""Ports of the admission of runs."""

from datetime import datetime
from typing import Protocol

from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.runs.admission.run_slots import SlotChanges


class SlotStore(Protocol):
    """Assigns slots. Writes raise `LeadershipLost` once another scheduler leads."""

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
        """Starts the runs that come next under the limits of this moment, and preempts others for them."""
        ...

    async def forget_admissions(self, token: FencingToken, before: datetime) -> None:
        """Forgets old admissions of users who have no runs in the queue."""
        ...
