"""Errors of prices."""

from services.common.errors import DomainError, ErrorKind


class NoPrice(DomainError, kind=ErrorKind.CONFLICT, reason="NO_PRICE"):
    """No price is known of {model}, so max_cost cannot be kept. Leave max_cost out, or price the model."""


class NoPriceElsewhere(DomainError, kind=ErrorKind.CONFLICT, reason="NO_PRICE"):
    """No price is known of the server {base_url}, so max_cost cannot be kept. Leave one of the two out."""
