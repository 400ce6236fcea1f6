"""Errors of orders that a provider cannot serve."""

from services.common.errors import DomainError, ErrorKind


class Unsupported(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """Pool {pool} cannot score choices by {scoring_method}{where}. It can by {supported}."""


class NeedsLoglikelihood(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """Task {task} ({output_type}) is scored by loglikelihood only; {pool} would by {scoring_method}."""


class NeedsTokens(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """Task {task} ({output_type}) has whole texts, which only a vLLM pool can score; {pool} uses {engine}."""


class CannotTruncate(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """Pool {pool} cannot cut prompts: only a vLLM pool knows their tokens. Leave truncation out."""


class CannotComplete(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """Pool {pool} supports chat prompts only (engine {engine}). Use prompt_form=chat."""


class CannotAskElsewhere(DomainError, kind=ErrorKind.CONFLICT, reason="UNSUPPORTED"):
    """base_url requires a pool of the engine openai; {pool} uses {engine}. Leave base_url out."""


class BaseUrlNotAllowed(DomainError, kind=ErrorKind.CONFLICT, reason="BASE_URL_NOT_ALLOWED"):
    """The base URL {base_url} is not allowed. Operators set PROCTOR_ALLOWED_BASE_URLS."""
