"""The messages of a chat as a request gives them. What only some models take is left to them to refuse."""

from services.scheduler.datasets.checking.dataset_fault import FaultKind, LineFault
from services.scheduler.datasets.checking.value_words import kind_of, shown

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def check_messages(messages: object, field: str) -> None:
    """Raises `LineFault`."""
    if not isinstance(messages, list) or not messages:
        kind = FaultKind.MISSING if messages is None else FaultKind.INVALID
        raise LineFault(field, f"messages must be a list of messages, not {_told(messages)}.", kind)
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
            f"{field}.content", f"content must be a text or a list of parts, not {_told(content)}."
        )
    for number, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise LineFault(
                f"{field}.content[{number}]", "A part of content must be an object with a type, such as text."
            )


def _role_problem(message: dict[str, object]) -> str:
    if "role" not in message:
        return f"role is missing; it must be one of {', '.join(ROLES)}."
    role = message["role"]
    told = shown(role) if isinstance(role, str) else kind_of(role)
    return f"role must be one of {', '.join(ROLES)}, not {told}."


def _told(value: object) -> str:
    return "an empty one" if value == [] else "null or missing" if value is None else kind_of(value)
