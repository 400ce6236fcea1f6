"""Refusals about sample sets. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class SampleSetNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="SAMPLE_SET_NOT_FOUND"):
    """Sample set {sample_set_id} not found."""


class SampleSetCommitted(DomainError, kind=ErrorKind.CONFLICT, reason="SAMPLE_SET_COMMITTED"):
    """Sample set {sample_set_id} is committed and takes no more samples; stage under a new id."""


class SampleSetIncomplete(DomainError, kind=ErrorKind.CONFLICT, reason="SAMPLE_SET_INCOMPLETE"):
    """Sample set {sample_set_id} has {staged} of {sample_count} samples; stage all of them, then commit."""


class SampleNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="SAMPLE_SET_NOT_FOUND"):
    """Sample set {sample_set_id} has no sample at position {position}."""


class UnstorableSamples(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """Samples from position {position} on hold a NUL character, which cannot be stored; mend the rows."""


class UnfitTarget(DomainError, kind=ErrorKind.INVALID, reason="NO_TARGETS"):
    """Row {doc_id} (from 0; {row_id}) does not fit {metric}: {problem}. Mend it, or order other metrics."""
