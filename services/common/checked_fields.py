"""Checks of the fields of a request, and page tokens: keys that callers hand back unread."""

import base64
import hashlib
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from proctor.values.contract_enum import ContractEnum
from proctor.values.generation import Problem
from services.common.errors import InvalidPageToken, InvalidParameter

Member = TypeVar("Member", bound=ContractEnum)
Key = TypeVar("Key")
# Detects mistakes, not attackers: a wrong token passes by chance once in 2**64.
_CHECKSUM_BYTES = 8


def invalid_field(field: str, problem: str) -> InvalidParameter:
    """The error whose sentence is the field and then what is wrong with it."""
    return InvalidParameter(field=field, sentence=f"{field} {problem}.")


def refuse(problem: Problem | None, *, of: str = "") -> None:
    """Raises `InvalidParameter` if there is a problem; its field is a part of the message field `of`."""
    if problem is not None:
        field = f"{of}.{problem.field}" if of else problem.field
        raise InvalidParameter(field=field, sentence=problem.sentence)


def nul_problem(field: str, *texts: str) -> Problem | None:
    """Neither Postgres nor an engine takes a NUL character."""
    if not any("\0" in text for text in texts):
        return None
    return Problem(field, f"{field} holds a NUL character. Leave it out.")


def checked_id(field: str, text: str) -> str:
    """The UUID in the one form that is a key everywhere."""
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise invalid_field(field, "must be a UUID") from error


def checked_text(field: str, text: str) -> str:
    refuse(nul_problem(field, text))
    return text


def checked_texts(field: str, texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(checked_text(field, text) for text in texts)


def checked_choice(field: str, choices: type[Member], number: int) -> Member:
    """The member of an enum that has the number."""
    try:
        return choices.of_number(number)
    except ValueError as error:
        known = ", ".join(f"{choice.number} ({choice.name})" for choice in choices)
        raise invalid_field(field, f"must be one of {known}, not {number}") from error


def checked_number(field: str, number: int, *, maximum: int, default: int) -> int:
    """The number, or the default for 0."""
    if not 0 <= number <= maximum:
        raise invalid_field(field, f"is {number}, but must be 1 to {maximum}, or 0 for {default}")
    return number or default


def write_page_token(of_list: str, *parts: str | int) -> str:
    """A token of the parts of a key; no part may hold a line feed."""
    key = "\n".join(map(str, parts)).encode()
    return _encoded(_checksum(of_list, key) + key)


def read_page_token(of_list: str, token: str, key_of: Callable[[list[str]], Key]) -> Key:
    """The key that `key_of` makes of the parts of a token; its `ValueError` becomes `InvalidPageToken`."""
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        checksum, key = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        # The last character of base64 can have several forms.
        if checksum != _checksum(of_list, key) or token != _encoded(content):
            raise InvalidPageToken(page_token=token)
        return key_of(key.decode().split("\n"))
    except (ValueError, OverflowError) as error:
        raise InvalidPageToken(page_token=token) from error


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _checksum(of_list: str, key: bytes) -> bytes:
    """Binds a token to its list, so that a changed token, or one of another list, is refused.

    It is not a secret: a forged token only selects a page of a list that its sender may read anyway.
    """
    return hashlib.sha256(of_list.encode() + b"\n" + key).digest()[:_CHECKSUM_BYTES]
