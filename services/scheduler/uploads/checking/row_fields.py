"""One line of a file as a row: an OpenAI batch request, or a prompt or messages with optional fields."""

from collections.abc import Mapping
from typing import TypeAlias, TypedDict

from proctor.values.row_fields import (
    MAX_MESSAGES,
    MAX_ROW_ID_CHARACTERS,
    content_part_problem,
    row_field_problem,
)
from services.scheduler.uploads.errors import FaultKind, LineFault
from services.scheduler.uploads.faults import kind_of, shown

CHAT = "/v1/chat/completions"
COMPLETION = "/v1/completions"
ENDPOINTS = (CHAT, COMPLETION)
BATCH_FIELDS = frozenset({"custom_id", "method", "url", "body"})
PLAIN_FIELDS = frozenset({"prompt", "messages", "target", "id", "metadata"})
# Floats represent integers exactly up to here.
_MAX_WHOLE = 2**53
# Fields of a body that are checked by themselves.
_READ_FIELDS = frozenset({"model", "messages", "prompt", "stream"})
# Fields of batch lines only. `id` is ambiguous: a plain field, or a slip for `custom_id`.
_BATCH_SIGNS = frozenset({"custom_id", "body", "url", "method"})

Line: TypeAlias = Mapping[str, object]
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class RowFields(TypedDict, total=False):
    """A row as stored, in this order. `body` is for `/v1/completions` if it has a prompt, else for chat."""

    id: str
    body: Line
    target: str
    metadata: Line


def is_batch_line(line: Line) -> bool:
    return not _BATCH_SIGNS.isdisjoint(line)


def batch_row(line: Line) -> RowFields:
    """Raises `LineFault`."""
    if not line.keys() <= BATCH_FIELDS:
        raise _unknown_field(line, BATCH_FIELDS, "a batch request")
    custom_id = line.get("custom_id")
    if not isinstance(custom_id, str) or not 0 < len(custom_id) <= MAX_ROW_ID_CHARACTERS:
        raise _id_fault(line, "custom_id")
    if line.get("method") != "POST":
        raise _fault("method", line, "method", '"POST"')
    url = line.get("url")
    if url not in ENDPOINTS:
        raise _fault("url", line, "url", " or ".join(f'"{one}"' for one in ENDPOINTS))
    body = line.get("body")
    if not isinstance(body, dict):
        raise _fault("body", line, "body", "an object")
    _check_body(body, str(url))
    return {"id": custom_id, "body": body}


def _check_body(body: Line, url: str) -> None:
    model = body.get("model", "unnamed")
    if not isinstance(model, str) or not model:
        raise _fault("body.model", body, "model", "the name of a model, or left out")
    if body.get("stream", False) is not False:
        raise LineFault("body.stream", "stream must be false or left out: a stored answer is not a stream.")
    if url == CHAT:
        check_messages(body.get("messages"), "body.messages")
    else:
        _check_prompt(body, "body.prompt")
    for name in body.keys() - _READ_FIELDS:
        problem = row_field_problem(name, body[name])
        if problem:
            raise LineFault(f"body.{name}", problem)


def plain_row(line: Line) -> RowFields:
    """The row has an `id` only if the line has one. Raises `LineFault`."""
    if not line.keys() <= PLAIN_FIELDS:
        raise _unknown_field(line, PLAIN_FIELDS, "a line with a prompt or messages")
    if ("prompt" in line) == ("messages" in line):
        both = "has both" if "prompt" in line else "has neither"
        raise LineFault("", f'A line has either "prompt" or "messages"; this one {both}.')
    row: RowFields = {}
    if "id" in line:
        row["id"] = _plain_id(line)
    if "messages" in line:
        check_messages(line["messages"], "messages")
        row["body"] = {"messages": line["messages"]}
    else:
        _check_prompt(line, "prompt")
        row["body"] = {"prompt": line["prompt"]}
    if line.get("target") is not None:
        row["target"] = _target(line)
    if line.get("metadata") is not None:
        row["metadata"] = _metadata(line)
    return row


def _plain_id(line: Line) -> str:
    given = line["id"]
    name = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ROW_ID_CHARACTERS:
        raise _id_fault(line, "id")
    return name


def _target(line: Line) -> str:
    target = line["target"]
    if isinstance(target, str):
        return target
    if isinstance(target, int | float) and not isinstance(target, bool):
        return _number_text(target)
    raise _fault("target", line, "target", "a text or a number")


def _number_text(number: float) -> str:
    """Writes 5.0 as 5: tables convert integers if a column has fractions or gaps."""
    is_whole = abs(number) < _MAX_WHOLE and float(number).is_integer()
    return str(int(number)) if is_whole else str(number)


def _metadata(line: Line) -> Line:
    metadata = line["metadata"]
    if not isinstance(metadata, dict):
        raise _fault("metadata", line, "metadata", "an object")
    return metadata


def _check_prompt(holder: Line, field: str) -> None:
    prompt = holder.get("prompt")
    if not isinstance(prompt, str) or not prompt:
        raise _fault(field, holder, "prompt", "a text that is not empty")


def _fault(field: str, holder: Line, name: str, wanted: str) -> LineFault:
    kind = FaultKind.INVALID if name in holder else FaultKind.MISSING
    return LineFault(field, _problem(holder, name, wanted), kind)


def _problem(holder: Line, name: str, wanted: str) -> str:
    if name not in holder:
        return f"{name} is missing; it must be {wanted}."
    value = holder[name]
    given = shown(value) if isinstance(value, str) else kind_of(value)
    return f"{name} must be {wanted}, not {given}."


def _id_fault(line: Line, name: str) -> LineFault:
    given = line.get(name)
    if isinstance(given, str) and given:
        sentence = f"{name} has {len(given)} characters, but must have at most {MAX_ROW_ID_CHARACTERS}."
        return LineFault(name, sentence)
    return _fault(name, line, name, "a text that is not empty")


def _unknown_field(line: Line, known: frozenset[str], kind: str) -> LineFault:
    name = min(line.keys() - known)
    fields = ", ".join(sorted(known))
    return LineFault(name, f"{shown(name)} is not a field of {kind}; it has {fields}.")


def check_messages(messages: object, field: str) -> None:
    """Raises `LineFault`."""
    if not isinstance(messages, list) or not messages:
        kind = FaultKind.MISSING if messages is None else FaultKind.INVALID
        raise LineFault(field, f"messages must be a list of messages, not {_description(messages)}.", kind)
    if len(messages) > MAX_MESSAGES:
        raise LineFault(field, f"A line has at most {MAX_MESSAGES:,} messages, not {len(messages):,}.")
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise LineFault(f"{field}[{number}]", f"A message must be an object, not {kind_of(message)}.")
        if message.get("role") not in ROLES:
            raise LineFault(f"{field}[{number}].role", _role_problem(message))
        if not isinstance(message.get("content"), str):
            _check_other_content(message, f"{field}[{number}]")


def _check_other_content(message: dict[str, object], field: str) -> None:
    content = message.get("content")
    if content is None and (message.get("tool_calls") or message.get("function_call")):
        return
    if not isinstance(content, list) or not content:
        raise LineFault(
            f"{field}.content", f"content must be a text or a list of parts, not {_description(content)}."
        )
    for number, part in enumerate(content):
        problem = content_part_problem(part)
        if problem:
            raise LineFault(f"{field}.content[{number}]", problem)


def _role_problem(message: dict[str, object]) -> str:
    if "role" not in message:
        return f"role is missing; it must be one of {', '.join(ROLES)}."
    role = message["role"]
    given = shown(role) if isinstance(role, str) else kind_of(role)
    return f"role must be one of {', '.join(ROLES)}, not {given}."


def _description(value: object) -> str:
    return "an empty one" if value == [] else "null or missing" if value is None else kind_of(value)
