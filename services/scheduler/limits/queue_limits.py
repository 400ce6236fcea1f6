"""Limits of the whole system: of runs, requests and storage. Operators change them while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta

from proctor.values.names.user import OTHER_USERS
from proctor.values.plain import INT32_MAX
from proctor.values.priority import Priority, default_priority
from services.common.errors import TooManyRequests

# One line of the list of changes.
_MAX_TEXT = 1024


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits now. A run keeps its slot for `min_run_time`, and for 5 s at least, before one of
    equal priority may preempt it.

    `highest_priorities` has an entry per user. A user without one has that of `OTHER_USERS`, or may use any.
    """

    max_running_runs: int
    max_pending_runs_per_user: int
    max_requests_per_minute: int
    run_time_limit: timedelta
    min_run_time: timedelta
    highest_priorities: Mapping[str, Priority]
    # 0 means no limit.
    max_reads_per_minute: int
    max_stored_bytes_per_user: int
    max_stored_files_per_user: int
    max_stored_rows_per_user: int
    # 0 means no limit.
    max_stored_bytes_per_project: int

    def allowed_priorities(self, user: str) -> tuple[Priority, ...]:
        """Priorities that the user may order, the highest first."""
        highest = self.highest_priority(user)
        return tuple(priority for priority in Priority if not priority.is_above(highest))

    def background_priority(self, user: str) -> Priority:
        """The priority of a batch or of rollouts: the default, or the highest of the user if it is lower."""
        return default_priority(is_background=True).limited_to(self.highest_priority(user))

    def highest_priority(self, user: str) -> Priority:
        return self.highest_priorities.get(user, self.highest_priorities.get(OTHER_USERS, Priority.HIGH))


@dataclass(frozen=True, slots=True)
class LimitChanges:
    """New limits. None leaves a limit as it is.

    `highest_priorities`, where there are any, replace the whole list. Limits named in `reset` return to the
    settings, unless they are changed as well.
    """

    max_running_runs: int | None = None
    max_pending_runs_per_user: int | None = None
    max_requests_per_minute: int | None = None
    run_time_limit: timedelta | None = None
    min_run_time: timedelta | None = None
    highest_priorities: Mapping[str, Priority] = field(default_factory=dict)
    max_stored_bytes_per_user: int | None = None
    max_stored_files_per_user: int | None = None
    max_stored_rows_per_user: int | None = None
    max_stored_bytes_per_project: int | None = None
    reset: frozenset[str] = frozenset()


# What can be changed, by the names that all APIs have for it.
LIMIT_NAMES = tuple(each.name for each in fields(LimitChanges) if each.name != "reset")


def changed_text(changes: LimitChanges) -> str:
    """The changes in one line, such as "max_running_runs=2, highest_priorities=default"."""
    given = {name: getattr(changes, name) for name in LIMIT_NAMES}
    texts = {name: "default" for name in LIMIT_NAMES if name in changes.reset}
    texts |= {name: _text(value) for name, value in given.items() if value not in (None, {})}
    return ", ".join(f"{name}={text}" for name, text in texts.items())[:_MAX_TEXT]


def _text(value: object) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.15g} s"
    if isinstance(value, Mapping):
        return " ".join(f"{user}:{priority}" for user, priority in value.items())
    return str(value)


@dataclass(frozen=True, slots=True)
class RequestAllowance:
    """Requests left to a user of the `limit` of this minute, which ends in `resets_in`. 0 means no limit."""

    limit: int
    remaining: int
    resets_in: timedelta


def allowance(limit: int, requests: int, user: str, resets_in: timedelta) -> RequestAllowance:
    """The allowance after so many requests of the user. Raises `TooManyRequests`."""
    if not limit:
        return RequestAllowance(0, INT32_MAX, resets_in)
    if requests > limit:
        seconds = int(resets_in.total_seconds()) + 1
        raise TooManyRequests(user=user, limit=limit, retry_after_seconds=seconds)
    return RequestAllowance(limit, limit - requests, resets_in)
