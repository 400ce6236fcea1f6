"""Refusals of the scheduler, each as one sentence that says what is wrong and what to do."""

from services.common.errors import DomainError, ErrorKind


class InvalidSetting(DomainError):
    """{setting} cannot be used: {problem}."""

    kind = ErrorKind.CONFLICT


class BelongsToAnother(DomainError):
    """{thing} belongs to {owner}: only {owner} and operators may change or delete it."""

    kind = ErrorKind.FORBIDDEN
    reason = "PERMISSION_DENIED"
