"""What results refuses, as one sentence each. The docstring is the message."""

from services.common.errors import DomainError


class ResultsError(DomainError):
    """The record cannot do this."""
