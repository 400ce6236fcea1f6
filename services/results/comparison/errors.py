"""Why runs cannot be compared."""

from services.common.errors import DomainError, ErrorKind


class OtherBenchmark(DomainError, kind=ErrorKind.CONFLICT, reason="NOT_COMPARABLE"):
    """The runs are of {first} and {second}; only runs of one suite, or over data sets, can be compared."""


class OtherScoring(DomainError, kind=ErrorKind.CONFLICT, reason="NOT_COMPARABLE"):
    """Choices were scored by {first} in one run and by {second} in another; force it to see it anyway."""


class OtherOptions(DomainError, kind=ErrorKind.CONFLICT, reason="NOT_COMPARABLE"):
    """Runs scored {metric} by other options: {first}, and {second}; force it, or score them alike."""


class NothingToCompare(DomainError, kind=ErrorKind.CONFLICT, reason="NOT_COMPARABLE"):
    """The runs have no metric in common ({metrics}): nothing to compare. Order them with the same metrics."""


class NoCommonSamples(DomainError, kind=ErrorKind.CONFLICT, reason="NO_COMMON_SAMPLES"):
    """Runs {first} and {second} have no sample in common; there is nothing to pair."""


class ComparisonTooSlow(DomainError, kind=ErrorKind.CONFLICT, reason="COMPARISON_TOO_SLOW"):
    """Comparing runs {first} and {second} took over {seconds} s; name fewer tasks or metrics."""


class RunOfModelNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="RUN_NOT_FOUND"):
    """Model {model} has no completed run of {benchmark}."""
