"""The ports of schedules: how users see them, and how the leader fires them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.scheduler.audit.audit_record import Author
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.schedules.schedule import Firing, Schedule, ScheduleId, SchedulePage


class ScheduleStore(Protocol):
    """A change and its author are stored in one transaction."""

    async def add(self, schedule: Schedule, author: Author) -> None:
        """Changes nothing where one with this id is there. Raises `TooManySchedules`."""
        ...

    async def get(self, schedule_id: ScheduleId) -> Schedule:
        """Raises `ScheduleNotFound`."""
        ...

    async def page(self, size: int, before: int | None, user: str, project_id: int | None) -> SchedulePage:
        """Schedules with a number below `before`; those of a user or of a project alone."""
        ...

    async def firings(self, schedule_id: ScheduleId) -> Sequence[Firing]:
        """The latest ones, latest first."""
        ...

    async def pause(self, schedule: Schedule, author: Author) -> None: ...

    async def resume(self, schedule: Schedule, next_due_at: datetime, author: Author) -> None:
        """Changes nothing where it is not paused."""
        ...

    async def delete(self, schedule: Schedule, author: Author) -> None: ...


class LedSchedules(Protocol):
    """The leader's side. All raise `LeadershipLost`."""

    async def due(self, now: datetime) -> Sequence[Schedule]:
        """Some of those whose time has come, of each user the earliest; none that waits since a moment."""
        ...

    async def fire(
        self, token: FencingToken, schedule: Schedule, firing: Firing, runs: Sequence[Run]
    ) -> bool:
        """Stores the firing, its runs and the next time in one transaction.

        False where somebody else has fired, paused or deleted the schedule since it was read. Raises
        `QueueFull`, and `ProjectNotFound` where its user may not order in its project any more.
        """
        ...

    async def is_without_user(self, schedule: Schedule, now: datetime) -> bool:
        """The last API key of its user was revoked since it was added or resumed."""
        ...

    async def stop(self, token: FencingToken, schedule: Schedule, firing: Firing) -> None:
        """Pauses it and tells why, the problem of the firing. Changes nothing where it has changed."""
        ...

    async def wait(self, token: FencingToken, schedule: Schedule, problem: str, now: datetime) -> None:
        """Notes why the firing that is due has to wait."""
        ...
