"""The messages of a chat in the forms that servers accept."""

from collections.abc import Mapping, Sequence

import orjson

from proctor.values.plain import Json
from proctor.values.row_fields import content_part_problem
from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines.errors import RequestRefused, UnsupportedRequest
from services.worker.engines.parsed_json import object_of

_PARTS = {
    "image_url": "an image",
    "input_image": "an image",
    "input_audio": "a sound",
    "audio_url": "a sound",
    "video_url": "a video",
    "file": "a file",
}


def message_objects(messages: Sequence[ChatMessage]) -> list[Json]:
    """Messages in the form of the OpenAI protocol, with all their fields."""
    return [_object(each) for each in messages]


def refuse_more_than_text(message: ChatMessage, number: int, provider: str) -> None:
    """`number` is that of the message in its chat, from 1."""
    if not message.fields_json:
        return
    fields = _fields(message)
    _refuse_parts(number, fields.pop("content", None), provider)
    if named := next((name for name, value in fields.items() if value), None):
        raise RequestRefused(
            f"Message {number} of the line has {named}, which {provider} does not take here."
        )


def templated_objects(messages: Sequence[ChatMessage], engine: str) -> list[Json]:
    """Messages in the form of chat templates.

    Parts joined to one text, arguments of tool calls as objects.
    """
    turns: list[Json] = []
    for number, message in enumerate(messages, start=1):
        turn: Json = {"role": message.role, "content": message.content}
        if message.fields_json:
            fields = _fields(message)
            _refuse_parts(number, fields.pop("content", None), engine)
            turn |= fields
            if isinstance(calls := turn.get("tool_calls"), list):
                turn["tool_calls"] = [_with_arguments(call) for call in calls]
        turns.append(turn)
    return turns


def require_chat(prompt: Prompt, provider: str) -> None:
    if not prompt.is_chat:
        raise UnsupportedRequest(f"{provider} supports chat prompts only. Use prompt_form=chat.")


def _object(message: ChatMessage) -> Json:
    """Parts of content are checked as at the upload: no server fetches an address for a row."""
    turn: Json = {"role": message.role, "content": message.content}
    if not message.fields_json:
        return turn
    fields = _fields(message)
    parts = fields.get("content")
    if not (parts is None or isinstance(parts, str | list)):
        raise RequestRefused("The content of a message must be a text or a list of parts.")
    for part in parts if isinstance(parts, list) else ():
        if problem := content_part_problem(part):
            raise RequestRefused(problem)
    return turn | fields


def _fields(message: ChatMessage) -> Json:
    return object_of(orjson.loads(message.fields_json))


def _refuse_parts(number: int, parts: object, provider: str) -> None:
    """Text parts are in the message's content already; any other part is refused."""
    for part in parts if isinstance(parts, list) else ():
        kind = str(object_of(part).get("type"))
        if kind != "text":
            what = _PARTS.get(kind, f"a part of type {kind}")
            raise RequestRefused(f"Message {number} of the line holds {what}, which {provider} cannot read.")


def _with_arguments(call: object) -> object:
    """The protocol carries arguments as JSON text; anything else stays as it is."""
    function = object_of(object_of(call).get("function"))
    try:
        arguments = orjson.loads(function["arguments"])
    except (KeyError, TypeError, orjson.JSONDecodeError):
        return call
    return {**object_of(call), "function": {**function, "arguments": _object_or_text(arguments, function)}}


def _object_or_text(arguments: object, function: Mapping[str, object]) -> object:
    return arguments if isinstance(arguments, dict) else function["arguments"]
