"""What results refuses, as one sentence each. The docstring is the message."""

from services.common.errors import DomainError, ErrorKind


class ResultsError(DomainError):
    """The record cannot do this."""


class RecordNotFound(ResultsError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class EpochOver(ResultsError):
    """Epoch {epoch} of run {run_id} is over; the run is in epoch {current}."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_CLOSED"


class EpochNotOpen(ResultsError):
    """Epoch {epoch} of run {run_id} is not open yet; the run is in epoch {current}."""

    kind = ErrorKind.CONFLICT
    reason = "INVALID_PARAMETER"


class RunIncomplete(ResultsError):
    """Run {run_id} still misses {missing} outcomes."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_INCOMPLETE"


class RunNotFinished(ResultsError):
    """Run {run_id} is not finished, so its figures may still change; wait for it or cancel it."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_FINISHED"


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


class InvalidField(ResultsError):
    """{field} {problem}."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UnfitTarget(ResultsError):
    """Row {row} ({row_id}) cannot be scored by {metric}: {problem}. Mend the row, or order other metrics."""

    kind = ErrorKind.INVALID
    reason = "NO_TARGETS"


class InvalidPageToken(ResultsError):
    """page_token is not one that this list gave. Start again without it."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PAGE_TOKEN"


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
