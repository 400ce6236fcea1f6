"""Errors of marked and of sorted answers."""

from services.common.errors import DomainError, ErrorKind


class NoSuchAnswer(DomainError):
    """Run {run_id} has no outcome for sample {sample}, rollout {rollout}, so no mark was changed."""

    kind = ErrorKind.INVALID
    reason = "ROW_NOT_FOUND"


class NoRowToMark(DomainError):
    """Run {run_id} has no row {row_id!r}, so no mark was changed."""

    kind = ErrorKind.INVALID
    reason = "ROW_NOT_FOUND"


class FailureNotMarked(DomainError):
    """Sample {sample}, rollout {rollout} of run {run_id} is a failure and no answer; nothing was marked."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class TooManyToSort(DomainError):
    """Run {run_id} can have more than {limit} outcomes, too many to sort: choose one task, or only filter."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"
