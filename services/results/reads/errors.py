"""Errors of reads that are bounded."""

from services.common.errors import DomainError, ErrorKind


class TooManyReads(DomainError):
    """Too many read results at once; try again in {retry_after_seconds} seconds."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"


class ReadTooSlow(DomainError):
    """This was not read within {seconds:g} s; ask for less, or again in {retry_after_seconds} seconds."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"
