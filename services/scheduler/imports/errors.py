"""Errors of imports."""

from services.common.errors import DomainError, ErrorKind


class LogRefused(DomainError, kind=ErrorKind.INVALID, reason="INVALID_LOG"):
    """{name} cannot be imported: {problem}"""


class ImportedElsewhere(Exception):
    """Another call with the same request id has added its run meanwhile."""


class ImportInterrupted(DomainError, kind=ErrorKind.CONFLICT, reason="IMPORT_INTERRUPTED"):
    """The import of {name} took longer than {limit} s and was given up. Import a part of it."""
