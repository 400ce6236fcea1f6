"""What the scheduler refuses, each as one sentence that says what is wrong and what to do."""

from services.common.errors import DomainError, ErrorKind


class SchedulerError(DomainError):
    """The scheduler refuses."""


class InvalidSetting(SchedulerError):
    """{setting} cannot be used: {problem}."""

    kind = ErrorKind.CONFLICT


class BelongsToAnother(SchedulerError):
    """{thing} belongs to {owner}: only {owner} and operators may change or delete it."""

    kind = ErrorKind.FORBIDDEN
    reason = "PERMISSION_DENIED"
