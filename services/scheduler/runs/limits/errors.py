"""Errors about limits."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


class TooManyRequests(SchedulerError):
    """User {user} has made the {limit} requests of this minute. Try again in {retry_after_seconds} s."""

    kind = ErrorKind.EXHAUSTED
    reason = "TOO_MANY_REQUESTS"
