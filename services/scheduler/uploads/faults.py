"""Faults of an uploaded file: the first by line and their number, and how they quote values."""

import dataclasses
import json
from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import orjson

from services.scheduler.uploads.errors import FaultKind, LineFault

MAX_SHOWN_CHARACTERS = 60
# The first ones show what is wrong; the others are counted.
MAX_NAMED_FAULTS = 20
MAX_FAULT_CHARACTERS = 300


def shown(text: str) -> str:
    """Quotes a text, shortened if it is long."""
    cut = text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
    return f'"{cut}"'


def kind_of(value: object) -> str:
    """Describes a JSON value in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


@dataclass(frozen=True, slots=True, order=True)
class DatasetFault:
    """`line` counts from 1, 0 is the whole file; `field` is like `body.messages[0].role`, "" for the line.

    `text` is how the line begins; of a row of a table, as the JSON line that it would be.
    """

    line: int
    field: str
    problem: str
    kind: FaultKind = dataclasses.field(default=FaultKind.INVALID, compare=False)
    text: str = dataclasses.field(default="", compare=False)


def faults_to_json(faults: Iterable[DatasetFault]) -> str:
    """Faults without the texts of their lines: nothing of a refused file is kept."""
    return json.dumps([{**asdict(fault), "text": ""} for fault in faults])


def faults_from_json(text: str) -> tuple[DatasetFault, ...]:
    stored = json.loads(text)
    return tuple(DatasetFault(**{**fault, "kind": FaultKind(fault["kind"])}) for fault in stored)


class FaultList:
    """Counts all faults and keeps the first ones, so memory stays bounded."""

    def __init__(self) -> None:
        self.first: list[DatasetFault] = []
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, line: int, fault: LineFault, value: object = None) -> None:
        """`value` is the line as it was read, where it could be."""
        self.count += 1
        if len(self.first) == MAX_NAMED_FAULTS:
            if line >= self.first[-1].line:
                return
            self.first.pop()
        text = fault.text or _json_of(value)
        insort(self.first, DatasetFault(line, _cut(fault.field), _cut(fault.problem), fault.kind, _cut(text)))

    def count_more(self, faults: int) -> None:
        """Adds faults of which only the number is known."""
        self.count += faults


def _json_of(value: object) -> str:
    if not isinstance(value, list | dict | str | int | float):
        return ""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:  # such as a text that is not UTF-8
        return ""


def _cut(text: str) -> str:
    """Shortens a text: names of fields in a file have any length."""
    return text if len(text) <= MAX_FAULT_CHARACTERS else f"{text[: MAX_FAULT_CHARACTERS - 1]}…"


def nul_path(value: object, path: str = "") -> str | None:
    """Returns the path of the first text with a NUL character, which no store and no engine accepts."""
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
    paths = (nul_path(held, where) for where, held in below)
    return next((found for found in paths if found is not None), None)
