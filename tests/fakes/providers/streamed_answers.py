"""Unstreamed answers as the providers stream them: the same answer in many events, a word in each."""

import re
from collections.abc import Iterable
from typing import Any

import orjson
from aiohttp import web

Json = dict[str, Any]

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
OPENAI_END = b"data: [DONE]\n\n"
_WORD = re.compile(r"\s*\S+\s*$|\s*\S+|\s+$")


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def server_sent(chunks: Iterable[Json], end: bytes = b"") -> bytes:
    return b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks) + end


def named_events(events: Iterable[Json]) -> bytes:
    """Each under the name of its type."""
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n" for event in events
    )


def json_lines(lines: Iterable[Json]) -> bytes:
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def streamed(body: bytes, content_type: str = SSE) -> web.Response:
    return web.Response(body=body, content_type=content_type)


def openai_chunks(answer: Json) -> list[Json]:
    """The role first; the tokens are counted in a chunk of their own, without choices."""
    is_chat = answer["object"] == "chat.completion"
    kind = "chat.completion.chunk" if is_chat else answer["object"]
    frame = {"id": answer["id"], "object": kind, "created": answer["created"], "model": answer["model"]}
    [choice] = answer["choices"]
    parts = _chat_parts(choice["message"]) if is_chat else [{"text": word} for word in words(choice["text"])]
    last: Json = {"delta": {}} if is_chat else {"text": ""}
    finish: Json = {"finish_reason": choice["finish_reason"]}
    choices = [{**part, "finish_reason": None} for part in parts] + [last | finish]
    chunks = [{**frame, "choices": [{"index": 0, "logprobs": None, **each}]} for each in choices]
    return [*chunks, {**frame, "choices": [], "usage": answer["usage"]}]


def _chat_parts(message: Json) -> list[Json]:
    deltas: list[Json] = [{"role": "assistant", "content": None if message["content"] is None else ""}]
    deltas += [{"reasoning_content": word} for word in words(message.get("reasoning_content") or "")]
    deltas += [{"content": word} for word in words(message["content"] or "")]
    deltas += [{"refusal": word} for word in words(message.get("refusal") or "")]
    deltas += [{"tool_calls": [{"index": 0, **call}]} for call in message.get("tool_calls") or ()]
    return [{"delta": delta} for delta in deltas]


def anthropic_events(message: Json) -> list[Json]:
    """A ping among them; what was counted last counts."""
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    start.pop("stop_details", None)
    blocks = [
        event for index, block in enumerate(message["content"]) for event in _block_events(index, block)
    ]
    reported = ("stop_reason", "stop_sequence", "stop_details")
    delta = {name: message[name] for name in reported if name in message}
    return [
        {"type": "message_start", "message": start},
        {"type": "ping"},
        *blocks,
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}},
        {"type": "message_stop"},
    ]


def _block_events(index: int, block: Json) -> list[Json]:
    field = "thinking" if block["type"] == "thinking" else "text"
    deltas: list[Json] = [{"type": f"{field}_delta", field: word} for word in words(block[field])]
    if field == "thinking":
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    empty = {**block, field: "", **({"signature": ""} if field == "thinking" else {})}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def gemini_chunks(answer: Json) -> list[Json]:
    """Each counts the prompt; why it ended stands in the last. A blocked prompt is one chunk."""
    if not answer.get("candidates"):
        return [answer]
    [candidate] = answer["candidates"]
    parts = candidate["content"].get("parts", ())
    said = [{**part, "text": word} for part in parts for word in words(part["text"])]
    frame = {name: answer[name] for name in ("modelVersion", "responseId") if name in answer}
    counted = {"promptTokenCount": answer["usageMetadata"]["promptTokenCount"]}
    chunks = [
        {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "usageMetadata": counted,
        }
        | frame
        for part in said
    ]
    content = {"role": "model", "parts": [{"text": ""}]} if said else {"role": "model"}
    last = {"content": content, "finishReason": candidate["finishReason"], "index": 0}
    return [*chunks, {"candidates": [last], "usageMetadata": answer["usageMetadata"], **frame}]


def ollama_lines(answer: Json) -> list[Json]:
    """The last line counts the tokens and says nothing."""
    frame = {"model": answer["model"], "created_at": answer["created_at"], "done": False}
    if "message" not in answer:
        return [
            *({**frame, "response": word} for word in words(answer["response"])),
            {**answer, "response": ""},
        ]
    message = answer["message"]
    thoughts = [{"content": "", "thinking": word} for word in words(message.get("thinking", ""))]
    said = [{"content": word} for word in words(message["content"])]
    turns = [{**frame, "message": {"role": "assistant", **part}} for part in (*thoughts, *said)]
    return [*turns, {**answer, "message": {"role": "assistant", "content": ""}}]


def openai_body(answer: Json) -> bytes:
    return server_sent(openai_chunks(answer), OPENAI_END)
