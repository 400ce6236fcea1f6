"""Where a value of JSON holds a NUL character, which no store and no engine takes."""

from collections.abc import Mapping


def nul_place(value: object, path: str = "") -> str | None:
    """The path of the first text that has one; None where none has."""
    if isinstance(value, str):
        return path if "\0" in value else None
    if isinstance(value, Mapping):
        below = [(f"{path}.{key}".lstrip("."), held) for key, held in value.items()]
        if any("\0" in key for key in value):
            return path
    elif isinstance(value, list):
        below = [(f"{path}[{number}]", held) for number, held in enumerate(value)]
    else:
        return None
    places = (nul_place(held, where) for where, held in below)
    return next((place for place in places if place is not None), None)
