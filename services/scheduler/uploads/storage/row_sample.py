"""Converts a stored row of a data set to a sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from proctor.values.sample import ChatMessage, Prompt, Target
from services.scheduler.suites.rendering.sample import RenderedSample, digest_of, netstrings

TASK = "rows"
VERSION = "1"
DIGEST_FORMAT = "proctor-row-1"
# Fields of a body that are not generation parameters.
_NO_PARAMETERS = frozenset({"model", "messages", "prompt", "stream", "stream_options"})
_PROMPT, _MESSAGES = (
    netstrings(part.encode() for part in (DIGEST_FORMAT, TASK, VERSION, form))
    for form in ("prompt", "messages")
)
_NO_TARGET = Target()


def sample_of_line(row: int, line: bytes) -> RenderedSample:
    """Converts a stored line; `row` counts from 0.

    The digest covers these netstrings: the format's name, the task, its version, "messages" or "prompt", the
    messages as JSON with sorted keys or the prompt, the parameters, the number of targets and each target.
    Id and metadata are not included: the same request is the same sample in any file.
    """
    fields = orjson.loads(line)
    body = fields["body"]
    params = _params(body)
    target = fields.get("target")
    messages = body.get("messages")
    prompt = (
        body["prompt"].encode() if messages is None else orjson.dumps(messages, option=orjson.OPT_SORT_KEYS)
    )
    encoded_target = (b"0",) if target is None else (b"1", target.encode())
    head = _PROMPT if messages is None else _MESSAGES
    encoded = head + netstrings((prompt, params, *encoded_target))
    chat = () if messages is None else tuple(map(_message, messages))
    metadata = fields.get("metadata")
    document = b"" if metadata is None else orjson.dumps(metadata)
    row_id = fields["id"]
    # A message in parts has its text twice: as text, and in its parts.
    size = len(encoded) + sum(len(turn.content.encode()) for turn in chat if turn.fields_json)
    return RenderedSample(
        position=row,
        doc_id=row,
        prompt=Prompt(body["prompt"]) if messages is None else Prompt(messages=chat),
        target=_NO_TARGET if target is None else Target(texts=(target,)),
        digest=digest_of(encoded),
        size_bytes=size,
        doc_json=document.decode(),
        stored_bytes=size + len(document) + len(row_id),
        params_json=params.decode(),
        row_id=row_id,
    )


def _params(body: Mapping[str, Any]) -> bytes:
    params = {name: value for name, value in body.items() if name not in _NO_PARAMETERS}
    return orjson.dumps(params, option=orjson.OPT_SORT_KEYS) if params else b""


def _message(message: Mapping[str, Any]) -> ChatMessage:
    content = message.get("content")
    if isinstance(content, str):
        if len(message) == 2:
            return ChatMessage(message["role"], content)
        fields = {name: value for name, value in message.items() if name not in ("role", "content")}
        return ChatMessage(message["role"], content, _json(fields))
    # Also null content, as in messages with tool calls.
    fields = {"content": content, **{name: value for name, value in message.items() if name != "role"}}
    return ChatMessage(message["role"], _text_of(content or ()), _json(fields))


def _text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _json(fields: Mapping[str, Any]) -> str:
    return orjson.dumps(fields).decode()
