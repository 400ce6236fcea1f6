"""Refusals about sample sets. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class SampleSetNotFound(DomainError):
    """Sample set {sample_set_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "SAMPLE_SET_NOT_FOUND"


class SampleSetCommitted(DomainError):
    """Sample set {sample_set_id} is committed and takes no more samples; stage under a new id."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class SampleSetIncomplete(DomainError):
    """Sample set {sample_set_id} has {staged} of {sample_count} samples; stage all of them, then commit."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class SampleNotFound(DomainError):
    """Sample set {sample_set_id} has no sample at position {position}."""

    kind = ErrorKind.NOT_FOUND
    reason = "SAMPLE_SET_NOT_FOUND"


class UnstorableText(DomainError):
    """Samples from position {position} on hold a NUL character, which cannot be stored; mend the rows."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UnfitTarget(DomainError):
    """Row {row} (from 0; {row_id}) does not fit {metric}: {problem}. Mend it, or order other metrics."""

    kind = ErrorKind.INVALID
    reason = "NO_TARGETS"
