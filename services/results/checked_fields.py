"""Fields of a request whose type says too little: ids, texts with a NUL, enums of any number, page tokens."""

import uuid
from collections.abc import Iterable
from typing import TypeVar

from proctor.values.contract_enum import ContractEnum
from services.common import page_token
from services.common.errors import DomainError, ErrorKind

Member = TypeVar("Member", bound=ContractEnum)


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


def checked_choice(field: str, choices: type[Member], number: int) -> Member:
    """The member of an enum that has the number."""
    try:
        return choices.of_number(number)
    except ValueError as error:
        known = ", ".join(f"{choice.number} ({choice.name})" for choice in choices)
        raise InvalidField(field=field, problem=f"must be one of {known}, not {number}") from error


def checked_number(field: str, number: int, *, most: int, usual: int) -> int:
    """The number, or the usual one for 0."""
    if not 0 <= number <= most:
        raise InvalidField(field=field, problem=f"must be 1 to {most}, or 0 for {usual}")
    return number or usual


class InvalidField(DomainError):
    """{field} {problem}."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


Key = tuple[int, int]
LARGEST = 2**31  # both numbers of a key are below


class InvalidPageToken(DomainError):
    """page_token is not one that this list gave. Start again without it."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PAGE_TOKEN"


def write_page_token(of_list: str, key: Key) -> str:
    """The token of the page after a key."""
    return page_token.write_page_token(of_list, *key)


def read_page_token(of_list: str, token: str, first: Key) -> Key:
    """The key in a token, or `first` where there is no token. Raises InvalidPageToken."""
    if not token:
        return first
    try:
        left, right = map(int, page_token.read_page_token(of_list, token))
    except ValueError as error:
        raise InvalidPageToken(page_token=token) from error
    if not (0 <= left < LARGEST and 0 <= right < LARGEST):
        raise InvalidPageToken(page_token=token)
    return left, right
