"""Errors about what a pool or provider cannot do for an order."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


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
    """The base URL {base_url} is not allowed. Operators set PROCTOR_SCHEDULER_ALLOWED_BASE_URLS."""

    kind = ErrorKind.CONFLICT
    reason = "BASE_URL_NOT_ALLOWED"
