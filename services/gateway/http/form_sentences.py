"""Sentences beside the fields of a form that say what is wrong with them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

# Sentences by the type of pydantic's error, with placeholders for its facts about the limit.
_SENTENCES: Mapping[str, str] = {
    "greater_than_equal": "At least {ge}.",
    "greater_than": "More than {gt}.",
    "less_than_equal": "At most {le}.",
    "less_than": "Less than {lt}.",
    "int_from_float": "A whole number.",
    "finite_number": "A finite number.",
    "string_too_short": "At least {min_length} characters.",
    "string_too_long": "At most {max_length} characters.",
    "too_short": "Choose at least {min_length}.",
    "too_long": "Choose at most {max_length}.",
    "missing": "Fill it in.",
    "enum": "One of {expected}.",
    "literal_error": "One of {expected}.",
}


def form_sentence(fault: Mapping[str, Any]) -> str:
    """The sentence of one of a ValidationError's errors."""
    known = _SENTENCES.get(str(fault["type"]))
    if known:
        return known.format_map({name: _figure(value) for name, value in fault.get("ctx", {}).items()})
    sentence = str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _figure(value: object) -> str:
    return f"{Decimal(f'{value:.15g}'):f}" if isinstance(value, float) else str(value)
