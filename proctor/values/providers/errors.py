"""Errors of what describes providers."""

from collections.abc import Sequence


class NoBaseUrl(ValueError):
    """The message says what an address must look like."""


class InvalidPools(ValueError):
    """The text is not a valid pools file; the message says why in one line."""


class UnknownPool(LookupError):
    """The pools file has no pool of that name; `known` are the names that it has."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name)
        self.known = known
