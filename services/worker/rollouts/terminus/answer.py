"""An answer in the JSON protocol of Terminus 2: analysis, plan, keystrokes, and whether the task is done."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# Of the protocol: the wait after keystrokes that say none, and the longest wait.
DEFAULT_SECONDS, MAX_SECONDS = 1.0, 60.0
_REQUIRED = ("analysis", "plan", "commands")
_KEYSTROKES, _DURATION, _COMPLETE = "keystrokes", "duration", "task_complete"
_YES = ("true", "1", "yes")


class _NotUsable(Exception):
    """Why nothing of an answer can be executed."""


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """Keys as tmux takes them, and the seconds to wait after them."""

    keys: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TerminusAnswer:
    """With an `error` there are no commands. `warnings` name what was put up with."""

    commands: tuple[Keystrokes, ...] = ()
    is_complete: bool = False
    error: str = ""
    warnings: tuple[str, ...] = ()


def read_answer(text: str) -> TerminusAnswer:
    """Text around the object is a warning, as are closing braces that are missing."""
    first: _NotUsable | None = None
    for candidate, warnings in _candidates(text):
        try:
            return _read(candidate, warnings)
        except _NotUsable as problem:
            first = first or problem
    return TerminusAnswer(error=str(first or "There is no JSON object in the answer."))


def _candidates(text: str) -> Iterator[tuple[str, list[str]]]:
    """The first object of the text; where it is not closed, the same with its braces closed."""
    start, end, depth = _object_in(text)
    if start is None:
        return
    if end is None:
        yield text[start:], []
        yield text[start:].rstrip() + "}" * depth, ["closing braces were missing, and were added"]
        return
    warnings = []
    if text[:start].strip():
        warnings.append("there is text before the JSON object")
    if text[end:].strip():
        warnings.append("there is text after the JSON object")
    yield text[start:end], warnings


def _object_in(text: str) -> tuple[int | None, int | None, int]:
    """Start and end of the first object, and how many braces are open at the end of the text."""
    start: int | None = None
    depth, is_in_string, is_escaped = 0, False, False
    for at, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = is_in_string
        elif character == '"' and start is not None:
            is_in_string = not is_in_string
        elif is_in_string:
            continue
        elif character == "{":
            start = at if start is None else start
            depth += 1
        elif character == "}" and start is not None:
            depth -= 1
            if not depth:
                return start, at + 1, 0
    return start, None, depth


def _read(candidate: str, warnings: list[str]) -> TerminusAnswer:
    """Raises _NotUsable."""
    try:
        fields = json.loads(candidate, strict=False)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise _NotUsable(f"The JSON is not valid: {reason}.") from error
    missing = [name for name in _REQUIRED if name not in fields]
    if missing:
        raise _NotUsable(f"These fields are missing: {', '.join(missing)}.")
    is_complete = fields.get(_COMPLETE, False)
    if isinstance(is_complete, str):
        is_complete = is_complete.lower() in _YES
    try:
        commands = tuple(_commands(fields["commands"], warnings))
    except _NotUsable as problem:
        if not is_complete:
            raise
        commands = ()
        warnings.append(str(problem))
    return TerminusAnswer(commands, bool(is_complete), warnings=tuple(warnings))


def _commands(listed: object, warnings: list[str]) -> Iterator[Keystrokes]:
    """Raises _NotUsable."""
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise _NotUsable("commands must be an array.")
    for number, each in enumerate(listed, 1):
        keys = each.get(_KEYSTROKES) if isinstance(each, Mapping) else None
        if not isinstance(each, Mapping) or not isinstance(keys, str):
            raise _NotUsable(f"Command {number} must be an object with the text {_KEYSTROKES}.")
        if unknown := sorted(each.keys() - {_KEYSTROKES, _DURATION}):
            warnings.append(f"command {number} has unknown fields: {', '.join(unknown)}")
        if number < len(listed) and keys and not keys.endswith("\n"):
            warnings.append(f"command {number} does not end with a newline, so the next one is on its line")
        yield Keystrokes(keys, _seconds(each, number, warnings))


def _seconds(command: Mapping[str, object], number: int, warnings: list[str]) -> float:
    given = command.get(_DURATION)
    try:
        seconds = float(given) if isinstance(given, int | float) else math.nan
    except OverflowError:
        seconds = MAX_SECONDS
    if math.isnan(seconds):
        warnings.append(f"command {number} has no {_DURATION} in seconds, so it is {DEFAULT_SECONDS:g}")
        return DEFAULT_SECONDS
    return min(max(seconds, 0.0), MAX_SECONDS)
