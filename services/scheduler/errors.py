"""What the scheduler refuses, each as one sentence that says what is wrong and what to do."""

from services.common.errors import DomainError, ErrorKind, Fact
from services.scheduler.suites import suite_errors


class SchedulerError(DomainError):
    """The scheduler refuses."""


class InvalidParameter(SchedulerError):
    """{sentence}"""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UnknownSuite(SchedulerError):
    """Invalid benchmark suite. Supported: {supported}"""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_SUITE"


class UnknownTask(SchedulerError):
    """Suite {suite} has no task {task}. Its tasks: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_TASK"


class UnknownProvider(SchedulerError):
    """No pool serves the provider "{provider}". Write the model as provider/name. Providers: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_PROVIDER"


class NoSuchProvider(SchedulerError):
    """No pool serves the provider "{provider}". Providers: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_PROVIDER"


class UnknownModel(SchedulerError):
    """No pool serves the model "{model}". Models of this provider: {supported}."""

    kind = ErrorKind.INVALID
    reason = "UNKNOWN_MODEL"


class Unsupported(SchedulerError):
    """Pool {pool} cannot score choices by {scoring_method}{where}. It can by {supported}."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class CannotTruncate(SchedulerError):
    """Pool {pool} cannot cut prompts: only a vLLM pool knows their tokens. Leave truncation out."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class CannotComplete(SchedulerError):
    """Pool {pool} continues no plain text: its engine {engine} only chats. Order prompt_form chat."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class CannotAskElsewhere(SchedulerError):
    """Pool {pool} asks no other server: a base_url is for pools of the engine openai, not {engine}."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class BaseUrlNotAllowed(SchedulerError):
    """The base URL {base_url} is not allowed. An operator allows servers by PROCTOR_ALLOWED_BASE_URLS."""

    kind = ErrorKind.CONFLICT
    reason = "BASE_URL_NOT_ALLOWED"


class InvalidAllowedBaseUrls(SchedulerError):
    """PROCTOR_ALLOWED_BASE_URLS cannot be used: each address in it {problem}."""

    kind = ErrorKind.CONFLICT


class QueueFull(SchedulerError):
    """Queue is full. Please try again later."""

    kind = ErrorKind.EXHAUSTED
    reason = "QUEUE_FULL"


class TooManyRequests(SchedulerError):
    """User {user} has made the {limit} requests of this minute. Try again in {retry_after_seconds} s."""

    kind = ErrorKind.EXHAUSTED
    reason = "TOO_MANY_REQUESTS"


class PriorityNotAllowed(SchedulerError):
    """User {user} may not ask for the priority {priority}. Ask for one of these: {allowed}."""

    kind = ErrorKind.CONFLICT
    reason = "PRIORITY_NOT_ALLOWED"


class RequestIdTaken(SchedulerError):
    """This request_id (Idempotency-Key) is of another order, run {run_id}. Give each an id of its own."""

    kind = ErrorKind.CONFLICT
    reason = "REQUEST_ID_TAKEN"


class RunNotFound(SchedulerError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class RunAlreadyFinished(SchedulerError):
    """Run {run_id} is already {state}; only a run that is not finished can be cancelled."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_ALREADY_FINISHED"


class RunNotRetryable(SchedulerError):
    """Run {run_id} is {state}; only a failed or cancelled run can be retried, once it is summed up."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_RETRYABLE"


class RunOfBatch(SchedulerError):
    """Run {run_id} is that of the batch {batch_id}, whose files are written once. Make a new batch."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_RETRYABLE"


class RunNotPausable(SchedulerError):
    """Run {run_id} is {state}; only a run that is running or waits can be paused."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_PAUSABLE"


class RunNotPaused(SchedulerError):
    """Run {run_id} is {state}; only a paused run can be resumed."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_PAUSED"


class RunNotOver(SchedulerError):
    """Run {run_id} is {state}, so it cannot be deleted yet. Cancel it first, or wait until it is over."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_STILL_ACTIVE"


class InvalidPageToken(SchedulerError):
    """page_token is not one that this list gave. Start again without it."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PAGE_TOKEN"


class InvalidPoolsFile(SchedulerError):
    """The pools file {file} cannot be used: {problem}. Correct it or set PROCTOR_POOLS_FILE to another."""

    kind = ErrorKind.CONFLICT


class InvalidPricesFile(SchedulerError):
    """The price file {file} cannot be used: {problem}. Correct it or set PROCTOR_PRICES_FILE to another."""

    kind = ErrorKind.CONFLICT


class NoPrice(SchedulerError):
    """No price is known of {model}, so max_cost cannot be kept. Leave max_cost out, or price the model."""

    kind = ErrorKind.CONFLICT
    reason = "NO_PRICE"


class NoPriceElsewhere(SchedulerError):
    """No price is known of the server {base_url}, so max_cost cannot be kept. Leave one of the two out."""

    kind = ErrorKind.CONFLICT
    reason = "NO_PRICE"


class CostLimitStays(SchedulerError):
    """Run {run_id} cannot go on: {spent}. Order it again with a higher max_cost."""

    kind = ErrorKind.CONFLICT
    reason = "COST_LIMIT_REACHED"


class SuitesFolderMissing(SchedulerError):
    """The suites folder {folder} is not there. Set PROCTOR_SUITES_DIR to one that is."""

    kind = ErrorKind.CONFLICT


class SuiteCacheOfAnother(SchedulerError):
    """The folder {folder} belongs to another user. Set PROCTOR_SUITE_CACHE_DIR to one of your own."""

    kind = ErrorKind.CONFLICT


class LeadershipLost(SchedulerError):
    """Another scheduler leads now."""

    kind = ErrorKind.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"


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
