"""Errors of converting values to contracts and back."""


class UnknownNumber(ValueError):
    """A message holds a number that no member of this version has."""

    def __init__(self, field: str, number: int) -> None:
        super().__init__(f"{field} has the unknown value {number}")
        self.field = field
        self.number = number


class FieldsDiffer(TypeError):
    """A value and a message cannot be paired; raised when the codec is made."""
