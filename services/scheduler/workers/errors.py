"""Errors of the pools and their models."""

from services.common.errors import DomainError, ErrorKind


class UnknownProvider(DomainError):
    """No pool serves the provider "{provider}".{advice} Providers: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_PROVIDER"


class UnknownModel(DomainError):
    """No pool serves the model "{model}". Models of this provider: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_MODEL"
