"""Checks of the fields of a request."""

import uuid
from collections.abc import Collection, Iterable
from typing import TypeVar

from proctor.values.contract_enum import ContractEnum
from proctor.values.generation import Problem
from services.common.errors import InvalidParameter

Member = TypeVar("Member", bound=ContractEnum)


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


def checked_ids(field: str, texts: Collection[str], most: int) -> list[str]:
    if len(texts) > most:
        raise invalid_field(field, f"are {len(texts)}, but must be at most {most}")
    return [checked_id(field, text) for text in texts]


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
