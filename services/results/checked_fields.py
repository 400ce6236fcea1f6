"""Fields of a request whose type says too little: ids, and enums that may carry any number."""

import uuid
from enum import IntEnum
from typing import TypeVar

from services.results.errors import InvalidField

Choice = TypeVar("Choice", bound=IntEnum)


def checked_id(field: str, text: str) -> str:
    """The id in the one form that is a key everywhere."""
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise InvalidField(field=field, problem="must be a UUID") from error


def checked_choice(field: str, choices: type[Choice], number: int) -> Choice:
    """The member of an enum that has the number."""
    try:
        return choices(number)
    except ValueError as error:
        known = ", ".join(f"{choice.value} ({choice.name})" for choice in choices)
        raise InvalidField(field=field, problem=f"must be one of {known}, not {number}") from error
