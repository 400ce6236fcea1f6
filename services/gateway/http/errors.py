"""Errors that the gateway raises itself; all others come from the service that a request is for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.common.errors import DomainError, ErrorKind


class GatewayError(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """The gateway refused the request."""

    # The HTTP status; 0 means that of the reason or kind.
    http_status = 0
    # The sentence of a page in place of the message, which is for programs; "" for the message itself.
    page_message = ""

    @property
    def problem_fields(self) -> dict[str, object]:
        """Fields of the problem document beside the usual ones."""
        return {}


class InvalidUserName(GatewayError):
    """The user name in X-Proctor-User must be 1 to 128 printable characters of UTF-8, and not *."""


class KeyMissing(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """This gateway needs an API key: send it as Authorization: Bearer KEY; an operator gives you one."""

    page_message = "This gateway asks for an API key. An operator gives them out."


class KeyUnknown(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """This API key is unknown, revoked or over; use one that the operator gave."""


class SessionOver(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """The session is over; sign in again."""


class TokenUnknown(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """The sign-in provider of this gateway gave no such token; get one by `proctor login`."""

    page_message = "The sign-in provider gave no token that this gateway takes. Sign in again."


class TokenOver(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """The token of the sign-in provider is over; get a new one, as by `proctor login`."""


class NoRoleByGroups(GatewayError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """{user} is in no group that has a role here. Ask an operator, who gives roles to groups."""


class SignInOver(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """This sign-in took too long, or was begun in another browser; begin again."""


class ProviderRefused(GatewayError, kind=ErrorKind.UNAUTHENTICATED, reason="UNAUTHENTICATED"):
    """The sign-in provider refused this sign-in; begin again."""


class ProviderAway(GatewayError, kind=ErrorKind.UNAVAILABLE, reason="DEPENDENCY_UNAVAILABLE"):
    """The sign-in provider {issuer} cannot be asked now; try again soon, or use an API key."""


class KeysOutdated(GatewayError, kind=ErrorKind.UNAVAILABLE, reason="DEPENDENCY_UNAVAILABLE"):
    """Whether this API key is still valid cannot be known while the scheduler is away; try again soon."""


class TooManyWrongKeys(GatewayError, kind=ErrorKind.EXHAUSTED, reason="TOO_MANY_WRONG_KEYS"):
    """{address} sent {limit} unknown API keys. Use a known one, or wait {retry_after_seconds} s."""


class NotForUsers(GatewayError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """This operation is not open to callers of the gateway."""


class RolloutsOfRunNotFound(GatewayError, kind=ErrorKind.NOT_FOUND, reason="ROLLOUT_NOT_FOUND"):
    """Run {run_id} is not over tasks of rollouts. Its answers are at /runs/{run_id}/results."""


class RolloutNotFound(GatewayError, kind=ErrorKind.NOT_FOUND, reason="ROLLOUT_NOT_FOUND"):
    """Run {run_id} has no rollout {rollout} of task {task}. Its rollouts are at /runs/{run_id}/rollouts."""


class DatasetRunNotFound(GatewayError, kind=ErrorKind.NOT_FOUND, reason="RUN_NOT_FOUND"):
    """Run {benchmark_id} not found: no run over a data set has this id."""


class DatasetRunNotPlanned(GatewayError, kind=ErrorKind.CONFLICT, reason="RUN_NOT_PLANNED"):
    """Run {benchmark_id} has not begun, so there are no answers to look at yet."""


class EmptyId(GatewayError):
    """{parameter} has an empty id in it: separate ids with single commas."""


class FileIsWhole(GatewayError):
    """A file has all answers of the run: leave out {parameters}, or ask for pages (format=json)."""


class SuiteNotFound(GatewayError, kind=ErrorKind.NOT_FOUND, reason="UNKNOWN_SUITE"):
    """There is no suite {suite}. Supported: {supported}."""


class SuiteVersionNotFound(GatewayError, kind=ErrorKind.NOT_FOUND, reason="UNKNOWN_SUITE"):
    """No user's suite {suite} has a version {version}."""


class SuiteVersionNamed(GatewayError):
    """{given} names a version; runs are looked for over all versions of a suite: name it {suite}."""


class ModelNotFound(GatewayError, kind=ErrorKind.NOT_FOUND, reason="UNKNOWN_MODEL"):
    """There is no model {model} here; GET /v1/models lists those that there are."""


class AmbiguousModel(GatewayError, reason="UNKNOWN_MODEL"):
    """Several providers have a model {model}: {candidates}. Name it with its provider."""


class NotSuiteText(GatewayError):
    """The body is not UTF-8 text; send the YAML file as it is."""


class MalformedForm(GatewayError):
    """The form cannot be read: {problem}. Send the file as the field `file` of multipart/form-data."""


class NoUploadName(GatewayError):
    """A data set has a name of 1 to 255 characters: the name of its file, or ?name=."""


class TooManyCalls(GatewayError, kind=ErrorKind.EXHAUSTED, reason="TOO_MANY_CALLS"):
    """User {user} has too much in progress: {limit}. Wait until some of it has ended."""


class GatewayFull(GatewayError, kind=ErrorKind.UNAVAILABLE, reason="GATEWAY_FULL"):
    """The gateway has {limit} calls in progress. Try again in a moment."""


class GatewayHoldsTooMuch(GatewayError, kind=ErrorKind.UNAVAILABLE, reason="GATEWAY_FULL"):
    """The calls in progress hold {limit} bytes, the limit of this gateway. Try again in a moment."""


class MessageMissing(GatewayError):
    """The call ended without a request; send one."""


class MessageTooSlow(GatewayError, kind=ErrorKind.CONFLICT, reason="REQUEST_TIMEOUT"):
    """The request did not come within {limit} s. Send it again."""


class BodyCutOff(GatewayError):
    """The body broke off before its end; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class SuiteFault:
    """A fault in a suite. `file` is empty for the document itself, `line` null when unknown.

    `field` is for example "tasks.0.doc_to_text"; it may be empty.
    """

    file: str
    line: int | None
    field: str
    problem: str


class SuiteRefused(GatewayError, reason="INVALID_SUITE_FILE"):
    """The suite cannot be run. {sentences}"""

    # The suite is the request itself, unlike an installed suite that is broken (409).
    http_status = 422

    def __init__(self, faults: Sequence[SuiteFault]) -> None:
        sentences = (fault_sentence(each.file, each.line, each.field, each.problem) for each in faults)
        super().__init__(sentences=" · ".join(sentences))
        self.faults = tuple(faults)

    @property
    def problem_fields(self) -> dict[str, object]:
        return {"faults": self.faults or None}


@dataclass(frozen=True, slots=True)
class DatasetFault:
    """A fault in a data set or file. `line` counts from 1 and is 0 for the whole file.

    `field` is for example "body.messages[0].role"; it is empty for the whole line.
    """

    line: int
    field: str
    problem: str

    @property
    def sentence(self) -> str:
        return fault_sentence("", self.line, self.field, self.problem)


class DatasetRefused(GatewayError, reason="INVALID_DATASET"):
    """The file has {faults} and nothing of it is kept. {first}"""

    def __init__(self, faults: Sequence[DatasetFault], count: int) -> None:
        super().__init__(faults=fault_count_text(count), first=faults[0].sentence if faults else "")
        self.faults = tuple(faults)
        self.count = count

    @property
    def problem_fields(self) -> dict[str, object]:
        return {"faults": self.faults, "fault_count": self.count}


def fault_sentence(file: str, line: int | None, field: str, problem: str) -> str:
    """The problem after its file, line and field, as far as they are known."""
    where = " ".join(part for part in (file, f"line {line}" if line else "", field) if part)
    return f"{where}: {problem}" if where else problem


def fault_count_text(count: int) -> str:
    return "1 fault" if count == 1 else f"{count} faults"


Faults = Mapping[str, str]


class FormFaults(Exception):
    """Sentences by field; "" has those of the whole form."""

    def __init__(self, faults: Faults) -> None:
        super().__init__("; ".join(faults.values()))
        self.faults = faults
