"""Errors about prices."""

from services.common.errors import ErrorKind
from services.scheduler.errors import SchedulerError


class InvalidPricesFile(SchedulerError):
    """The price file {file} cannot be used: {problem}. Correct it or set PROCTOR_SCHEDULER_PRICES_FILE."""

    kind = ErrorKind.CONFLICT


class NoPrice(SchedulerError):
    """No price is known of {model}, so max_cost cannot be kept. Leave max_cost out, or price the model."""

    kind = ErrorKind.CONFLICT
    reason = "NO_PRICE"


class NoPriceElsewhere(SchedulerError):
    """No price is known of the server {base_url}, so max_cost cannot be kept. Leave one of the two out."""

    kind = ErrorKind.CONFLICT
    reason = "NO_PRICE"
