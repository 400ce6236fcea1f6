"""Limits change for all replicas at once; a number that makes no sense is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from proctor.values.generation import Problem
from proctor.values.run import EVERYBODY
from services.scheduler.errors import InvalidParameter
from services.scheduler.requests import user_problem
from services.scheduler.runs.limits.queue_limits import LimitChanges, LimitStore, QueueLimits

_MOST_RUNNING = 10_000
_MOST_PENDING = 100_000
_MOST_REQUESTS = 1_000_000
_LONGEST = timedelta(days=365)
_MOST_PRIORITIES = 1000


@dataclass(frozen=True)
class ChangeLimits:
    limits: LimitStore

    async def change(self, changes: LimitChanges) -> QueueLimits:
        problem = next(_problems(changes), None)
        if problem:
            raise InvalidParameter(field=f"limits.{problem.field}", sentence=problem.sentence)
        return await self.limits.change(changes)


def _problems(changes: LimitChanges) -> Iterator[Problem]:
    counts = (
        ("max_running_runs", changes.max_running, _MOST_RUNNING),
        ("max_pending_runs_per_user", changes.max_pending_per_user, _MOST_PENDING),
        ("max_requests_per_minute", changes.max_requests_per_minute, _MOST_REQUESTS),
    )
    for field, count, most in counts:
        if count is not None and not 1 <= count <= most:
            yield Problem(field, f"{field} is {count}, but must be at least 1 and at most {most}.")
    if changes.run_time_limit is not None and not timedelta() < changes.run_time_limit <= _LONGEST:
        seconds = changes.run_time_limit.total_seconds()
        yield Problem(
            "run_time_limit", f"run_time_limit is {seconds:g} s, but must be above 0 and at most a year."
        )
    if changes.min_run_time is not None and not timedelta() <= changes.min_run_time <= _LONGEST:
        seconds = changes.min_run_time.total_seconds()
        yield Problem(
            "min_run_time", f"min_run_time is {seconds:g} s, but must be at least 0 and at most a year."
        )
    yield from _priority_problems(changes)


def _priority_problems(changes: LimitChanges) -> Iterator[Problem]:
    if len(changes.priorities) > _MOST_PRIORITIES:
        sentence = (
            f"priorities name {len(changes.priorities)} users, but may name at most {_MOST_PRIORITIES}."
        )
        yield Problem("priorities", sentence)
    for user in changes.priorities:
        problem = user_problem(user) if user != EVERYBODY else None
        if problem:
            yield Problem("priorities", problem.sentence)
