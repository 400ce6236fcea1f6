"""Refusals about sample sets. The docstring is the message."""

from services.common.errors import ErrorKind
from services.results.errors import ResultsError


class SampleSetNotFound(ResultsError):
    """Sample set {sample_set_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "SAMPLE_SET_NOT_FOUND"


class SampleSetCommitted(ResultsError):
    """Sample set {sample_set_id} is committed and takes no more samples; stage under a new id."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class SampleSetIncomplete(ResultsError):
    """Sample set {sample_set_id} has {staged} of {sample_count} samples; stage all of them, then commit."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class SampleNotFound(ResultsError):
    """Sample set {sample_set_id} has no sample at position {position}."""

    kind = ErrorKind.NOT_FOUND
    reason = "SAMPLE_SET_NOT_FOUND"


class UnstorableText(ResultsError):
    """Samples from position {position} on hold a NUL character, which cannot be stored; mend the rows."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UnfitTarget(ResultsError):
    """Row {row} ({row_id}) cannot be scored by {metric}: {problem}. Mend the row, or order other metrics."""

    kind = ErrorKind.INVALID
    reason = "NO_TARGETS"
