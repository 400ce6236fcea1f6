"""Errors of the pools and their models."""

from services.common.errors import DomainError, ErrorKind


class UnknownProvider(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_PROVIDER"):
    """No pool serves the provider "{provider}".{advice} Providers: {supported}."""


class UnknownModel(DomainError, kind=ErrorKind.INVALID, reason="UNKNOWN_MODEL"):
    """No pool serves the model "{model}". Models of this provider: {supported}."""
