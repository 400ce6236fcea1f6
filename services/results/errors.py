"""What results refuses, as one sentence each. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class ResultsError(DomainError):
    """The record cannot do this."""


class UnknownMetric(ResultsError):
    """No metric {metric!r} here. Supported: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_METRIC"


class OtherSuite(ResultsError):
    """The runs are of {first} and {second}; only runs of one suite, or over data sets, can be compared."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class OtherScoring(ResultsError):
    """Choices were scored by {first} in one run and by {second} in another; force it to see it anyway."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class OtherOptions(ResultsError):
    """Runs scored {metric} by other options: {first}, and {second}; force it, or score them alike."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class NothingToCompare(ResultsError):
    """The runs have no metric in common ({metrics}): nothing to compare. Order them with the same metrics."""

    kind = ErrorKind.CONFLICT
    reason = "NOT_COMPARABLE"


class NoCommonSamples(ResultsError):
    """Runs {first} and {second} have no sample in common; there is nothing to pair."""

    kind = ErrorKind.CONFLICT
    reason = "NO_COMMON_SAMPLES"


class NoRunOfModel(ResultsError):
    """Model {model} has no completed run of suite {suite}."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class NoSuchAnswer(ResultsError):
    """Run {run_id} has no outcome for sample {sample}, rollout {rollout}, so no mark was changed."""

    kind = ErrorKind.INVALID
    reason = "ROW_NOT_FOUND"


class NoSuchRow(ResultsError):
    """Run {run_id} has no row {row_id!r}, so no mark was changed."""

    kind = ErrorKind.INVALID
    reason = "ROW_NOT_FOUND"


class FailureNotGolden(ResultsError):
    """Sample {sample}, rollout {rollout} of run {run_id} is a failure and no answer; nothing was marked."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class NoGoldenAnswers(ResultsError):
    """There is no golden answer in {runs} yet; mark some first."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class RunChanged(ResultsError):
    """Run {run_id} was retried or deleted while it was exported; export it again when it is finished."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_FINISHED"
