"""Errors of schedules."""

from services.common.errors import DomainError, ErrorKind


class ScheduleNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="SCHEDULE_NOT_FOUND"):
    """Schedule {schedule_id} not found."""


class TooManySchedules(DomainError, kind=ErrorKind.CONFLICT, reason="TOO_MANY_SCHEDULES"):
    """{user} has {limit} schedules already; delete those that are not needed."""
