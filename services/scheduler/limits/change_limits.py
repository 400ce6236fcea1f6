"""Limits change for all replicas at once; a number that makes no sense is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from proctor.values.generation import Problem
from proctor.values.run import EVERYBODY, MAX_TIME_LIMIT_SECONDS
from services.common.checked_fields import refuse
from services.common.requests.request_fields import user_problem
from services.scheduler.changes.user_change import Author
from services.scheduler.limits.ports import LimitStore
from services.scheduler.limits.queue_limits import LimitChanges, QueueLimits

# Bounds against slips of the hand; all of them leave sums below 2**63.
_MAX_RUNNING = 10_000
_MAX_PENDING = 100_000
_MAX_REQUESTS = 1_000_000
# What any object store holds, and far below what Postgres counts to.
_MAX_BYTES = 2**50
_MAX_FILES = 10_000_000
_MAX_ROWS = 2**50
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
    counts = (
        ("max_running_runs", changes.max_running, 1, _MAX_RUNNING),
        ("max_pending_runs_per_user", changes.max_pending_per_user, 1, _MAX_PENDING),
        ("max_requests_per_minute", changes.max_requests_per_minute, 1, _MAX_REQUESTS),
        ("max_stored_bytes_per_user", changes.max_stored_bytes_per_user, 1, _MAX_BYTES),
        ("max_stored_files_per_user", changes.max_stored_files_per_user, 1, _MAX_FILES),
        ("max_stored_rows_per_user", changes.max_stored_rows_per_user, 1, _MAX_ROWS),
        ("max_stored_bytes_per_project", changes.max_stored_bytes_per_project, 0, _MAX_BYTES),
    )
    for field, count, least, most in counts:
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
    if len(changes.priorities) > _MAX_PRIORITIES:
        sentence = f"priorities name {len(changes.priorities)} users, but may name at most {_MAX_PRIORITIES}."
        yield Problem("priorities", sentence)
    for user in changes.priorities:
        problem = user_problem(user) if user != EVERYBODY else None
        if problem:
            yield Problem("priorities", problem.sentence)
