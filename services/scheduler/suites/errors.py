"""Errors about suites, tasks and rows."""

from services.common.errors import ErrorKind, Fact
from services.scheduler.errors import SchedulerError
from services.scheduler.suites import suite_errors


class UnknownSuite(SchedulerError):
    """Invalid benchmark suite. Supported: {supported}"""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_SUITE"


class UnknownTask(SchedulerError):
    """Suite {suite} has no task {task}. Its tasks: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_TASK"


class SuitesFolderMissing(SchedulerError):
    """The suites folder {folder} is not there. Set PROCTOR_SCHEDULER_SUITES_DIR to one that is."""

    kind = ErrorKind.CONFLICT


class SuiteCacheOfAnother(SchedulerError):
    """The folder {folder} belongs to another user. Set PROCTOR_SCHEDULER_SUITE_CACHE_DIR to your own."""

    kind = ErrorKind.CONFLICT


class SuiteInUse(SchedulerError):
    """Version {version} of the suite {suite} was used by a run, so it stays. Add a new version instead."""

    kind = ErrorKind.CONFLICT
    reason = "SUITE_IN_USE"


class NoSuchVersion(SchedulerError):
    """There is no version {version} of {suite} to delete. Of users' suites there are: {others}."""

    kind = ErrorKind.NOT_FOUND
    reason = "UNKNOWN_SUITE"


class SuiteOfInstallation(SchedulerError):
    """{suite} is a suite of the installation; only its files in the folder of suites can be removed."""

    kind = ErrorKind.NOT_FOUND
    reason = "UNKNOWN_SUITE"


class NoSuchRow(SchedulerError):
    """Task {task} has no row {row}: it has {rows} rows, counted from 0."""

    kind = ErrorKind.INVALID
    reason = "ROW_NOT_FOUND"


class ShowingTooLong(SchedulerError):
    """Task {task} takes over {seconds} s up to row {row}. Ask for an earlier row; a run has more time."""

    kind = ErrorKind.CONFLICT
    reason = "DEADLINE_REACHED"


class SuiteRefused(SchedulerError):
    """{sentence}"""

    def __init__(self, error: suite_errors.SuiteError, kind: ErrorKind, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        super().__init__(sentence=str(error), **_facts_of(error))


def _facts_of(error: suite_errors.SuiteError) -> dict[str, Fact]:
    if isinstance(error, suite_errors.InvalidSuiteFile):
        return {"file": str(error.file), "line": error.line or 0, "key": error.key}
    if isinstance(error, suite_errors.InvalidRow):
        return {"task": error.task, "row": error.row, "field": error.field}
    if isinstance(error, suite_errors.UnknownMetric):
        return {"metric": error.metric, "supported": suite_errors.listed(error.supported)}
    if isinstance(error, suite_errors.InvalidMetric):
        return {"field": "order.metrics", "metric": error.metric, "option": error.option}
    return {}


_SUITE_REFUSALS: dict[type[suite_errors.SuiteError], tuple[ErrorKind, str]] = {
    suite_errors.InvalidSuiteFile: (ErrorKind.CONFLICT, "INVALID_SUITE_FILE"),
    suite_errors.DatasetUnavailable: (ErrorKind.CONFLICT, "ROWS_UNAVAILABLE"),
    suite_errors.NoRows: (ErrorKind.CONFLICT, "ROWS_UNAVAILABLE"),
    suite_errors.InvalidRow: (ErrorKind.CONFLICT, "INVALID_ROW"),
    suite_errors.FewshotPoolTooSmall: (ErrorKind.INVALID, "INVALID_PARAMETER"),
    suite_errors.NoFewshotPool: (ErrorKind.INVALID, "INVALID_PARAMETER"),
    suite_errors.UnknownMetric: (ErrorKind.INVALID, "UNKNOWN_METRIC"),
    suite_errors.InvalidMetric: (ErrorKind.INVALID, "INVALID_PARAMETER"),
}


def refusal_of(error: suite_errors.SuiteError) -> SchedulerError:
    """What is wrong with a suite or its rows, as a refusal with kind and reason."""
    if isinstance(error, suite_errors.UnknownSuite):
        return UnknownSuite(suite=error.suite, supported=suite_errors.listed(error.supported))
    if isinstance(error, suite_errors.UnknownTask):
        return UnknownTask(suite=error.suite, task=error.task, supported=suite_errors.listed(error.supported))
    kind, reason = _SUITE_REFUSALS.get(type(error), (ErrorKind.INTERNAL, "INTERNAL"))
    return SuiteRefused(error, kind, reason)
