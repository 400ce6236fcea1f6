"""How engines fail: failures of requests, and what keeps a worker from starting."""

from proctor.values.outcome import FailureClass
from proctor.values.usage import TokenUsage
from services.common.errors import DomainError, ErrorKind


class EngineFailure(Exception):
    """The machinery failed, so there is no answer. The message is one sentence without secrets."""

    failure_class = FailureClass.ENGINE
    is_transient = False

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        # The tokens of an answer that cannot be used and was paid all the same.
        self.usage = TokenUsage()


class RateLimited(EngineFailure):
    failure_class = FailureClass.RATE_LIMIT
    is_transient = True


class RequestTimedOut(EngineFailure):
    failure_class = FailureClass.TIMEOUT
    is_transient = True


class ProviderFailed(EngineFailure):
    """The server failed, or its answer was cut off or cannot be read: another try may help."""

    failure_class = FailureClass.PROVIDER_ERROR
    is_transient = True


class RequestRefused(EngineFailure):
    """The server refuses the request, or this engine cannot send it: another try ends in the same way."""

    failure_class = FailureClass.REFUSED

    def __init__(self, message: str, *, refused_fields: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        # Fields of the request that the server does not take, as far as it says so.
        self.refused_fields = refused_fields


class ModelRefused(RequestRefused):
    """The key, its permissions or the model are refused, so that every request of the run would be.

    Where that is not certain, it may be this request alone.
    """

    def __init__(self, message: str, *, is_certain: bool = True) -> None:
        super().__init__(message)
        self.is_certain = is_certain


class PromptTooLong(EngineFailure):
    failure_class = FailureClass.PROMPT_TOO_LONG


class ModelCannotLoad(EngineFailure):
    """The model does not exist or the engine refuses it: no sample of it can be executed here."""


class UnsupportedRequest(EngineFailure):
    """The engine does not support the request, such as log-likelihood behind a chat-only server."""

    failure_class = FailureClass.REFUSED


class EngineBrokeOff(EngineFailure):
    """The engine ended one answer by itself, as vLLM does where it cannot load its cache: ask again."""

    is_transient = True


class EngineDied(EngineFailure):
    """The engine's process ended: requests in flight are not recorded, and the next load restarts it."""

    is_transient = True


class CannotStart(DomainError, kind=ErrorKind.INVALID, reason="INVALID_PARAMETER"):
    """{problem}"""
