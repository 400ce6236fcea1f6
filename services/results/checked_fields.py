"""Fields of a request whose type says too little: ids, texts with a NUL, enums that may carry any number."""

import uuid
from collections.abc import Iterable
from typing import TypeVar

from proctor.values.contract_enum import ContractEnum
from services.common.errors import DomainError, ErrorKind

Choice = TypeVar("Choice", bound=ContractEnum)


def checked_id(field: str, text: str) -> str:
    """The id in the one form that is a key everywhere."""
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise InvalidField(field=field, problem="must be a UUID") from error


def checked_text(field: str, text: str) -> str:
    """A text that may be looked up: Postgres knows no NUL."""
    if "\x00" in text:
        raise InvalidField(field=field, problem="must not contain a NUL")
    return text


def checked_texts(field: str, texts: Iterable[str]) -> tuple[str, ...]:
    """All of them, checked."""
    return tuple(checked_text(field, text) for text in texts)


def checked_choice(field: str, choices: type[Choice], number: int) -> Choice:
    """The member of an enum that has the number."""
    try:
        return choices.of_number(number)
    except ValueError as error:
        known = ", ".join(f"{choice.number} ({choice.name})" for choice in choices)
        raise InvalidField(field=field, problem=f"must be one of {known}, not {number}") from error


class InvalidField(DomainError):
    """{field} {problem}."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"
