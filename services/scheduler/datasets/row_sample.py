"""A row of a data set becomes a sample: what is asked, by which parameters, and what is expected."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from services.scheduler.suites.rendering.sample import ChatMessage, Sample, Target, digest_of, netstrings

TASK = "rows"
VERSION = "1"
DIGEST_FORMAT = "proctor-row-1"
# Of a body: what is asked, whom, and how it comes back; all else are parameters.
_NO_PARAMETERS = frozenset({"model", "messages", "prompt", "stream", "stream_options"})
_PROMPT, _MESSAGES = (
    netstrings(part.encode() for part in (DIGEST_FORMAT, TASK, VERSION, form))
    for form in ("prompt", "messages")
)
_NOTHING_EXPECTED = Target()


def sample_of_line(row: int, line: bytes) -> Sample:
    """`line` is a row as it is kept. `row` counts from 0.

    The digest is taken over netstrings: the format's name, the task, its version, "messages" or "prompt",
    the messages as JSON with sorted keys or the prompt, the parameters, and the number of targets and each.
    Id and metadata are left out: the same request is the same sample in any file.
    """
    fields = orjson.loads(line)
    body = fields["body"]
    params = _params(body)
    target = fields.get("target")
    messages = body.get("messages")
    asked = (
        body["prompt"].encode() if messages is None else orjson.dumps(messages, option=orjson.OPT_SORT_KEYS)
    )
    expected = (b"0",) if target is None else (b"1", target.encode())
    head = _PROMPT if messages is None else _MESSAGES
    encoded = head + netstrings((asked, params, *expected))
    chat = () if messages is None else tuple(map(_message, messages))
    metadata = fields.get("metadata")
    document = b"" if metadata is None else orjson.dumps(metadata)
    row_id = fields["id"]
    # Of a message in parts the text is there twice: by itself, and in its parts.
    size = len(encoded) + sum(len(turn.content.encode()) for turn in chat if turn.fields_json)
    return Sample(
        position=row,
        doc_id=row,
        prompt="" if messages is not None else body["prompt"],
        choices=(),
        target=_NOTHING_EXPECTED if target is None else Target(texts=(target,)),
        digest=digest_of(encoded),
        cluster="",
        size_bytes=size,
        doc_json=document.decode(),
        stored_bytes=size + len(document) + len(row_id),
        messages=chat,
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
    # Also that it has none: what calls a tool says nothing.
    fields = {"content": content, **{name: value for name, value in message.items() if name != "role"}}
    return ChatMessage(message["role"], _text_of(content or ()), _json(fields))


def _text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def _json(fields: Mapping[str, Any]) -> str:
    return orjson.dumps(fields).decode()
