"""Errors about pools, providers and models."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


class UnknownProvider(SchedulerError):
    """No pool serves the provider "{provider}".{advice} Providers: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_PROVIDER"


class UnknownModel(SchedulerError):
    """No pool serves the model "{model}". Models of this provider: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_MODEL"


class InvalidPoolsFile(SchedulerError):
    """The pools file {file} cannot be used: {problem}. Correct it or set PROCTOR_POOLS_FILE to another."""

    kind = ErrorKind.CONFLICT


class InvalidAllowedBaseUrls(SchedulerError):
    """PROCTOR_SCHEDULER_ALLOWED_BASE_URLS cannot be used: each address in it {problem}."""

    kind = ErrorKind.CONFLICT
