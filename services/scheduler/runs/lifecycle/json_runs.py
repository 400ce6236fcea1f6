"""Parts of a run as they are stored: JSON."""

import json
from typing import TypeVar

from proctor.values.plain import from_plain, to_plain

T = TypeVar("T")


def to_json(value: object | None) -> str | None:
    """A dataclass as JSON; None stays None."""
    return None if value is None else json.dumps(to_plain(value))


def from_json(value_type: type[T], text: str | None) -> T | None:
    return None if text is None else from_plain(value_type, json.loads(text))
