"""Reads the fields of a task's file: each with its type. Keys without a meaning here become notes."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.scheduler.rollouts.tasks.errors import InvalidTask

_FROM_HOST = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
# A registry's host, path, tag and digest; nothing that a program could take for an option.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}")


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of a file. `location` leads to it: "evaluation.", or empty for the file itself.

    `notes` are those of the whole file.
    """

    task: str
    file: str
    values: Mapping[str, object]
    location: str = ""
    notes: list[str] = field(default_factory=list)

    def note_others(self, *known: str) -> None:
        """A key that no version of Proctor reads is not a fault: newer tools write more of them."""
        unknown = [str(key) for key in self.values if key not in known]
        self.notes.extend(
            f"{self.location}{key[:100]} of {self.file} has no effect: the key is unknown" for key in unknown
        )

    def problem(self, key: str, problem: str) -> InvalidTask:
        return InvalidTask(self.task, self.file, problem, f"{self.location}{key}")

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default the field must be there."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.problem(key, "a text is needed." if value is None else "it must be a text.")
        if "\0" in value:
            raise self.problem(key, "it holds a zero byte.")
        return value

    def number(self, key: str, default: float, *, minimum: float = 0.0) -> float:
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            # Variables of the environment are texts.
            try:
                value = float(value)
            except ValueError as error:
                raise self.problem(key, "it must be a number.") from error
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.problem(key, "it must be a number.")
        if not math.isfinite(value) or value < minimum:
            raise self.problem(key, f"it must be a number of at least {minimum:g}.")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.problem(key, "it must be true or false.")
        return value

    def inner(self, key: str) -> "Fields":
        """An object; empty where it is missing."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.problem(key, "it must be an object.")
        return self.at(value or {}, f"{self.location}{key}.")

    def at(self, values: Mapping[str, object], location: str) -> "Fields":
        """An object at another location of the file."""
        return Fields(self.task, self.file, values, location, self.notes)

    def objects(self, key: str) -> list["Fields"]:
        values = self._items(key)
        if not all(isinstance(value, Mapping) for value in values):
            raise self.problem(key, "it must be a list of objects.")
        return [
            self.at(value, f"{self.location}{key}.{number}.")
            for number, value in enumerate(values)
            if isinstance(value, Mapping)
        ]

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._items(key)
        if not all(isinstance(value, str) for value in values):
            raise self.problem(key, "it must be a list of texts.")
        return tuple(map(str, values))

    def variables(self, key: str) -> dict[str, str]:
        """Names and values of an environment; numbers become texts."""
        found = {}
        for name, value in self.inner(key).values.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise self.problem(f"{key}.{name}", "the value of a variable is a text.")
            if not name or "=" in name or "\0" in f"{name}{value}":
                raise self.problem(f"{key}.{name}", "it cannot be a variable.")
            found[name] = str(value)
        return found

    def _items(self, key: str) -> Sequence[object]:
        value = self.values.get(key)
        if value is not None and not isinstance(value, list):
            raise self.problem(key, "it must be a list.")
        return value or []


def checked_image(fields: Fields, key: str) -> str:
    """The name of an image; empty where there is none. Raises InvalidTask."""
    image = fields.text(key, "")
    if image and _IMAGE.fullmatch(image) is None:
        raise fields.problem(key, "it must name an image, such as python:3.13.")
    return image


def host_free(fields: Fields, key: str) -> dict[str, str]:
    """`${NAME:-default}` is its default: variables of the host do not enter a sandbox.

    A variable that takes one without a default is not set, and noted.
    """
    values: dict[str, str] = {}
    for name, value in fields.variables(key).items():
        missing = [found[1] for found in _FROM_HOST.finditer(value) if found[2] is None]
        if missing:
            written = f"{fields.location}{key}.{name} of {fields.file}"
            fields.notes.append(f"{written} is not set: it takes {missing[0]} from the host")
        else:
            values[name] = _FROM_HOST.sub(lambda found: found[2], value)
    return values
