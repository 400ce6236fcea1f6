"""Limits in memory, as Postgres keeps them."""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta

from services.scheduler.audit.audit_record import Author
from services.scheduler.limits.queue_limits import LimitChanges, QueueLimits, RequestAllowance, allowance
from tests.fakes.scheduler_rules import queue_limits


@dataclass
class InMemoryLimits:
    now: QueueLimits = field(default_factory=queue_limits)
    requests: dict[tuple[str, bool], tuple[datetime, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._settings = self.now

    async def limits(self) -> QueueLimits:
        return self.now

    async def change(self, changes: LimitChanges, author: Author) -> QueueLimits:  # noqa: ARG002  # as the port has it
        back = {name: getattr(self._settings, name) for name in changes.reset}
        given = {one.name: getattr(changes, one.name) for one in fields(changes) if one.name != "reset"}
        is_given = {name: value for name, value in given.items() if value is not None and value != {}}
        self.now = replace(self.now, **back | is_given)
        return self.now

    async def count_request(self, user: str, now: datetime, *, is_read: bool = False) -> RequestAllowance:
        limit = self.now.max_reads_per_minute if is_read else self.now.max_requests_per_minute
        this_minute = now.replace(second=0, microsecond=0)
        minute, count = self.requests.get((user, is_read), (this_minute, 0))
        count = 1 if minute < this_minute else count + 1
        self.requests[user, is_read] = (max(minute, this_minute), count)
        return allowance(limit, count, user, this_minute + timedelta(minutes=1) - now)

    async def delete_request_counts(self, before: datetime) -> None:
        self.requests = {
            user: (minute, count)
            for user, (minute, count) in self.requests.items()
            if minute >= before - timedelta(minutes=1)
        }
