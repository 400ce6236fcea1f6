"""Limits change for all replicas at once; a number that makes no sense is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from proctor.values.generation import Problem
from proctor.values.names.user import OTHER_USERS
from proctor.values.run import LIMIT_BOUNDS, MAX_TIME_LIMIT_SECONDS
from services.common.checked_fields import refuse
from services.common.requests.request_fields import user_problem
from services.scheduler.audit.audit_record import Author
from services.scheduler.limits.ports import LimitStore
from services.scheduler.limits.queue_limits import LimitChanges, QueueLimits

_MAX_SECONDS = timedelta(seconds=MAX_TIME_LIMIT_SECONDS)
# All of them are read with the limits, at each admission.
_MAX_PRIORITIES = 1000


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    limits: LimitStore

    async def change(self, changes: LimitChanges, author: Author) -> QueueLimits:
        refuse(next(_problems(changes), None), of="limits")
        return await self.limits.change(changes, author)


def _problems(changes: LimitChanges) -> Iterator[Problem]:
    for field, (least, most) in LIMIT_BOUNDS.items():
        count = getattr(changes, field)
        if count is not None and not least <= count <= most:
            yield Problem(field, f"{field} is {count}, but must be at least {least} and at most {most}.")
    times = (
        ("run_time_limit", changes.run_time_limit, timedelta(microseconds=1), "above 0"),
        ("min_run_time", changes.min_run_time, timedelta(), "at least 0"),
    )
    for field, time, shortest, bound in times:
        if time is not None and not shortest <= time <= _MAX_SECONDS:
            seconds = f"{time.total_seconds():.15g} s"
            yield Problem(field, f"{field} is {seconds}, but must be {bound} and at most a year.")
    yield from _priority_problems(changes)


def _priority_problems(changes: LimitChanges) -> Iterator[Problem]:
    users = len(changes.highest_priorities)
    if users > _MAX_PRIORITIES:
        sentence = f"highest_priorities names {users} users, but may name at most {_MAX_PRIORITIES}."
        yield Problem("highest_priorities", sentence)
    for user in changes.highest_priorities:
        problem = user_problem(user) if user != OTHER_USERS else None
        if problem:
            yield Problem("highest_priorities", problem.sentence)
