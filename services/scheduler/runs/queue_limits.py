"""The limits that decide who runs and who waits, and what an operator may change of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from services.scheduler.runs.run_order import Priority

# Stands for all users who are not named.
EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """As they hold now. A run keeps its place for `min_stay` before an equally urgent one may take it.

    `priorities` gives the highest that a user may ask for; who is neither named nor `EVERYBODY` may have any.
    """

    max_running: int = 3
    max_pending_per_user: int = 10
    max_requests_per_minute: int = 100
    run_time_limit: timedelta = timedelta(hours=3)
    min_stay: timedelta = timedelta(seconds=60)
    priorities: Mapping[str, Priority] = field(default_factory=dict)

    def allowed_priorities(self, user: str) -> tuple[Priority, ...]:
        """What the user may ask for, the most urgent first."""
        highest = self.priorities.get(user, self.priorities.get(EVERYBODY, Priority.HIGH))
        return tuple(priority for priority in Priority if priority >= highest)


@dataclass(frozen=True, slots=True)
class LimitChanges:
    """What is None stays as it is; `priorities`, where there are any, replace the whole list."""

    max_running: int | None = None
    max_pending_per_user: int | None = None
    max_requests_per_minute: int | None = None
    run_time_limit: timedelta | None = None
    min_stay: timedelta | None = None
    priorities: Mapping[str, Priority] = field(default_factory=dict)
