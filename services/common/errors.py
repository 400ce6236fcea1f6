"""The base of errors, each a sentence with its facts, and errors of several services. No transport."""

from enum import StrEnum
from typing import ClassVar

Fact = str | int | float


class ErrorKind(StrEnum):
    """The kind of an error; each API translates it to its own codes."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    EXHAUSTED = "exhausted"
    UNAVAILABLE = "unavailable"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    INTERNAL = "internal"


class DomainError(Exception):
    """Something went wrong."""

    # The docstring of a subclass is its message, with the facts filled in.
    kind: ErrorKind = ErrorKind.INTERNAL
    # Name of a value of proctor.v1.ErrorReason without its prefix.
    reason: str = "INTERNAL"
    template: ClassVar[str | None] = None

    def __init_subclass__(cls, kind: ErrorKind | None = None, reason: str = "") -> None:
        """A kind or a reason that a class does not name is that of its parent."""
        super().__init_subclass__()
        if kind is not None:
            cls.kind = kind
        if reason:
            cls.reason = reason

    def __init__(self, /, **facts: Fact) -> None:
        self.facts = facts
        self.message = (self.template or type(self).__doc__ or "").format(**facts)
        super().__init__(self.message)


class RemoteError(DomainError):
    """An error that another service reported, with its reason, message and facts."""

    def __init__(self, kind: ErrorKind, reason: str, message: str, facts: dict[str, str]) -> None:
        self.kind = kind
        self.reason = reason
        self.facts = dict(facts)
        self.message = message
        Exception.__init__(self, message)


class MessageTooLarge(RemoteError):
    """A message between services is over a limit of the transport: a fault of its sender."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorKind.INTERNAL, "INTERNAL", message, {})


class DependencyUnavailable(DomainError, kind=ErrorKind.UNAVAILABLE, reason="DEPENDENCY_UNAVAILABLE"):
    """{dependency} does not answer; it is needed for this. Check that it runs, then try again."""


class InvalidSetting(DomainError, kind=ErrorKind.CONFLICT):
    """{setting} cannot be used: {problem}."""


class BelongsToAnother(DomainError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """{thing} belongs to {owner}: only {owner} and operators may change or delete it."""


class RunNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="RUN_NOT_FOUND"):
    """Run {run_id} not found."""


class ProjectNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="PROJECT_NOT_FOUND"):
    """There is no such project, or you have no role in it that allows this."""


class RowsNotGuarded(DomainError, kind=ErrorKind.CONFLICT, reason="ROWS_NOT_GUARDED"):
    """Row security of Postgres does not hold for {role}. Use a role without SUPERUSER and BYPASSRLS."""


class TooManyRequests(DomainError, kind=ErrorKind.EXHAUSTED, reason="TOO_MANY_REQUESTS"):
    """User {user} has made the {limit} requests of this minute. Try again in {retry_after_seconds} s."""


class InvalidParameter(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """{sentence}"""


class UnstorableText(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """A text of the request holds a NUL character, which cannot be stored or found. Leave it out."""


class InvalidPageToken(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PAGE_TOKEN"):
    """page_token is not one that this list gave. Start again without it."""


class SchemaTooNew(DomainError, kind=ErrorKind.CONFLICT):
    """Schema {schema} needs code with migration {needed}; here the last is {newest}. Run a newer release."""


class SchemaTooOld(DomainError, kind=ErrorKind.CONFLICT):
    """Schema {schema} lacks migration {migration}. Run `python -m services.{schema} migrate` first."""


class MigrationBlocked(DependencyUnavailable):
    """Migration {migration} of schema {schema} got no lock in {seconds} s. End long transactions."""


class ClientNotAllowed(DomainError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """{client} may not call {service}: PROCTOR_TLS_CLIENT_NAMES has no name of its certificate for that."""


class PostgresAway(DependencyUnavailable):
    """Postgres does not answer at {address}. Start it or correct PROCTOR_POSTGRES_DSN."""


class PostgresRefused(DomainError, kind=ErrorKind.CONFLICT):
    """Postgres at {address} refuses the connection: {problem}. Correct PROCTOR_POSTGRES_DSN or the server."""


class PostgresTooOld(DomainError, kind=ErrorKind.CONFLICT):
    """Postgres {needed} or newer is needed; this is {found}. Upgrade the server at {address}."""


class AddressTaken(DomainError, kind=ErrorKind.CONFLICT):
    """Cannot listen on {address}: the port is taken. Stop what uses it or set another address."""


class CannotListen(DomainError, kind=ErrorKind.CONFLICT):
    """Cannot listen on {address}: {problem}. Set another address."""


class SharedKeyUnusable(DomainError, kind=ErrorKind.CONFLICT):
    """{services} share {variable}. It needs {minimum} characters or more."""


class CallNotSigned(DomainError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """The call of {method} is not signed: call the gateway, which signs its calls."""


class CallSignedWrongly(DomainError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """The signature of {method} is false or over: services need one key, and clocks within {seconds} s."""


class OperatorsOnly(DomainError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """Only operators may do this, and {user} is none. Ask one, or use a key with the role operator."""


class ViewersOnlyRead(DomainError, kind=ErrorKind.FORBIDDEN, reason="PERMISSION_DENIED"):
    """The key of {user} has the role {role}, which only reads. Use a key with the role runner."""


class ObjectStoreUnavailable(DomainError, kind=ErrorKind.UNAVAILABLE, reason="OBJECT_STORE_UNAVAILABLE"):
    """The object store cannot be used: {problem}. Nothing was changed; check it, then try again."""


class TooManyReads(DomainError, kind=ErrorKind.UNAVAILABLE, reason="TOO_MANY_READS"):
    """Too many lists and results are read at once; try again in {retry_after_seconds} seconds."""


class ReadTooSlow(DomainError, kind=ErrorKind.UNAVAILABLE, reason="READ_TOO_SLOW"):
    """The query exceeded {seconds:g} s; narrow it, or try again in {retry_after_seconds} seconds."""


class WorkCancelled(Exception):
    """The work of this thread was cancelled."""


class TookTooLong(Exception):
    """A call was ended because its time was over, or its process was lost."""


class RequestUnanswerable(Exception):
    """The process crashed, exceeded its CPU time, or hangs idle."""


class ProcessLost(Exception):
    """The process was killed, or stopped for long, by something else than its request."""
