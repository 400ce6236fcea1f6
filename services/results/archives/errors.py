"""Refusals about archives. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class NotYetArchivable(DomainError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_CLOSED"):
    """Run {run_id} is not closed, or is still compared with others; archive it once that is done."""


class NoArchive(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """There is no store for archives; set PROCTOR_SCHEDULER_OBJECT_STORE for results and the scheduler."""


class TooManyRows(Exception):
    """More is selected than one statement may be sent."""
