"""Why runs cannot be compared."""

from services.common.errors import DomainError, ErrorKind


class OtherSuite(DomainError):
    """The runs are of {first} and {second}; only runs of one suite, or over data sets, can be compared."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class OtherScoring(DomainError):
    """Choices were scored by {first} in one run and by {second} in another; force it to see it anyway."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class OtherOptions(DomainError):
    """Runs scored {metric} by other options: {first}, and {second}; force it, or score them alike."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class NothingToCompare(DomainError):
    """The runs have no metric in common ({metrics}): nothing to compare. Order them with the same metrics."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class NoCommonSamples(DomainError):
    """Runs {first} and {second} have no sample in common; there is nothing to pair."""

    kind = ErrorKind.CONFLICT
    reason = "NO_COMMON_SAMPLES"


class ComparisonTooSlow(DomainError):
    """Comparing runs {first} and {second} took over {seconds} s; name fewer tasks or metrics."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class NoRunOfModel(DomainError):
    """Model {model} has no completed run of suite {suite}."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"
