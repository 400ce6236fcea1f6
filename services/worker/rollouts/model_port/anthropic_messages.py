"""Messages of Anthropic, as Claude Code speaks them, in the form of chat completions."""

from collections.abc import Iterator, Sequence

import orjson

from proctor.values.plain import Json
from services.worker.engines.parsed_json import object_of, objects_of, text_of
from services.worker.rollouts.model_port.model_call import CallRefused, ModelAnswer, ModelCall
from services.worker.rollouts.model_port.openai_chat import (
    assistant_message,
    chat_message,
    function_call,
    tools_of,
)
from services.worker.rollouts.model_port.ports import Event

_SAME_NAME = ("max_tokens", "temperature", "top_p")
_ERRORS = {401: "authentication_error", 429: "rate_limit_error"}


class AnthropicMessages:
    def read(self, body: Json, path: str) -> ModelCall:  # noqa: ARG002  # the port
        turns = [turn for message in objects_of(body.get("messages")) for turn in _turns(message)]
        if not turns:
            raise CallRefused(400, "messages is missing.")
        if system := _text(body.get("system")):
            turns.insert(0, {"role": "system", "content": system})
        params: dict[str, object] = {name: body[name] for name in _SAME_NAME if body.get(name) is not None}
        if stops := body.get("stop_sequences"):
            params["stop"] = stops
        tools = [each for each in objects_of(body.get("tools")) if each.get("input_schema")]
        if tools:
            params["tools"] = tools_of(
                [
                    (text_of(each.get("name")), text_of(each.get("description")), each["input_schema"])
                    for each in tools
                ]
            )
        messages = tuple(chat_message(turn) for turn in turns)
        return ModelCall(messages, params, text_of(body.get("model")), body.get("stream") is True)

    def answer(self, call: ModelCall, answer: ModelAnswer) -> Json:
        return {**_opened(call, answer), "content": _blocks(answer), "stop_reason": _reason(answer)}

    def events(self, call: ModelCall, answer: ModelAnswer) -> Sequence[Event]:
        return list(_events(call, answer))

    def error(self, refused: CallRefused) -> Json:
        kind = _ERRORS.get(refused.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": str(refused)}}


def _turns(message: Json) -> Iterator[Json]:
    """A message of Anthropic holds results of tools beside text; those of OpenAI are turns of their own."""
    role, content = text_of(message.get("role")), message.get("content")
    if isinstance(content, str):
        yield {"role": role, "content": content}
        return
    blocks = objects_of(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            call_id = text_of(block.get("tool_use_id"))
            yield {"role": "tool", "tool_call_id": call_id, "content": _text(block.get("content"))}
    text = _text(content)
    calls = [
        function_call(text_of(each.get("id")), text_of(each.get("name")), _json(each.get("input")))
        for each in blocks
        if each.get("type") == "tool_use"
    ]
    if role == "assistant":
        yield assistant_message(text, calls)
    elif text:
        yield {"role": role, "content": text}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_of(each.get("text")) for each in objects_of(content) if each.get("type") == "text")


def _json(value: object) -> str:
    return orjson.dumps(object_of(value)).decode()


def _opened(call: ModelCall, answer: ModelAnswer) -> Json:
    usage = answer.usage
    return {
        "id": "msg_proctor",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.prompt_tokens - usage.cached_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "output_tokens": usage.completion_tokens,
        },
    }


def _blocks(answer: ModelAnswer) -> list[Json]:
    text: list[Json] = [{"type": "text", "text": answer.text}] if answer.text or not answer.tool_calls else []
    tools = [
        {"type": "tool_use", "id": each.call_id, "name": each.name, "input": each.arguments_object}
        for each in answer.tool_calls
    ]
    return text + tools


def _reason(answer: ModelAnswer) -> str:
    if answer.tool_calls:
        return "tool_use"
    return "max_tokens" if answer.is_cut_off else "end_turn"


def _events(call: ModelCall, answer: ModelAnswer) -> Iterator[Event]:
    opened = _opened(call, answer)
    yield "message_start", {"type": "message_start", "message": opened}
    for index, block in enumerate(_blocks(answer)):
        if block["type"] == "text":
            empty: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": _json(block["input"])}
        begun = {"type": "content_block_start", "index": index, "content_block": empty}
        yield "content_block_start", begun
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": _reason(answer), "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": opened["usage"]}
    yield "message_stop", {"type": "message_stop"}
