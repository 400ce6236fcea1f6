"""Errors of orders that a provider cannot serve."""

from services.common.errors import DomainError, ErrorKind


class Unsupported(DomainError):
    """Pool {pool} cannot score choices by {scoring_method}{where}. It can by {supported}."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class CannotTruncate(DomainError):
    """Pool {pool} cannot cut prompts: only a vLLM pool knows their tokens. Leave truncation out."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class CannotComplete(DomainError):
    """Pool {pool} continues no plain text: its engine {engine} only chats. Order prompt_form chat."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class CannotAskElsewhere(DomainError):
    """Pool {pool} asks no other server: a base_url is for pools of the engine openai, not {engine}."""

    kind = ErrorKind.CONFLICT
    reason = "UNSUPPORTED"


class BaseUrlNotAllowed(DomainError):
    """The base URL {base_url} is not allowed. Operators set PROCTOR_ALLOWED_BASE_URLS."""

    kind = ErrorKind.CONFLICT
    reason = "BASE_URL_NOT_ALLOWED"
