"""Why nothing can be exported."""

from services.common.errors import ErrorKind
from services.results.errors import ResultsError


class NoGoldenAnswers(ResultsError):
    """There is no golden answer in {runs} yet; mark some first."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class RunChanged(ResultsError):
    """Run {run_id} was retried or deleted while it was exported; export it again when it is finished."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_FINISHED"
