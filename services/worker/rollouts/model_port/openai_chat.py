"""Chat completions of OpenAI, as aider, opencode and most programs speak them."""

from collections.abc import Sequence

import orjson

from proctor.values.openai import usage_body
from proctor.values.plain import Json
from proctor.values.sample import ChatMessage
from services.worker.engines.parsed_json import object_of, objects_of, text_of
from services.worker.rollouts.model_port.model_call import CallRefused, ModelAnswer, ModelCall
from services.worker.rollouts.model_port.ports import Event

_ID = "chatcmpl-proctor"
# Those of the call itself, and what would store it elsewhere.
_NO_PARAMS = ("messages", "model", "stream", "stream_options", "store", "metadata", "user")


class OpenAIChat:
    def read(self, body: Json, path: str) -> ModelCall:  # noqa: ARG002  # the port
        messages = tuple(chat_message(each) for each in objects_of(body.get("messages")))
        if not messages:
            raise CallRefused(400, "messages is missing.")
        if body.get("n") not in (None, 1):
            raise CallRefused(400, "n must be 1.")
        params = {name: value for name, value in body.items() if name not in (*_NO_PARAMS, "n")}
        return ModelCall(messages, params, text_of(body.get("model")), body.get("stream") is True)

    def answer(self, call: ModelCall, answer: ModelAnswer) -> Json:
        message: Json = {"role": "assistant", "content": answer.text or None}
        if answer.tool_calls:
            message["tool_calls"] = tool_call_objects(answer)
        choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
        return self._document("chat.completion", call, [choice]) | {"usage": usage_body(answer.usage)}

    def events(self, call: ModelCall, answer: ModelAnswer) -> Sequence[Event]:
        delta: Json = {"role": "assistant", "content": answer.text or None}
        if answer.tool_calls:
            delta["tool_calls"] = [
                {"index": index, **each} for index, each in enumerate(tool_call_objects(answer))
            ]
        kind = "chat.completion.chunk"
        content = {"index": 0, "delta": delta, "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": _reason(answer)}
        last = self._document(kind, call, []) | {"usage": usage_body(answer.usage)}
        chunks = (self._document(kind, call, [content]), self._document(kind, call, [ended]), last, "[DONE]")
        return [("", chunk) for chunk in chunks]

    def error(self, refused: CallRefused) -> Json:
        return {"error": {"message": str(refused), "type": refused.code, "param": None, "code": refused.code}}

    def _document(self, kind: str, call: ModelCall, choices: list[Json]) -> Json:
        return {"id": _ID, "object": kind, "created": 0, "model": call.model, "choices": choices}


def chat_message(message: Json) -> ChatMessage:
    """The message with all its fields; its content as text too."""
    content = message.get("content")
    rest = {name: value for name, value in message.items() if name not in ("role", "content")}
    if isinstance(content, list):
        rest["content"] = content
        text = "".join(text_of(part.get("text")) for part in objects_of(content))
    else:
        text = text_of(content)
    fields_json = orjson.dumps(rest).decode() if rest else ""
    return ChatMessage(text_of(message.get("role")), text, fields_json)


def tool_call_objects(answer: ModelAnswer) -> list[Json]:
    return [
        {
            "id": each.call_id,
            "type": "function",
            "function": {"name": each.name, "arguments": each.arguments},
        }
        for each in answer.tool_calls
    ]


def assistant_message(text: str, calls: Sequence[Json]) -> Json:
    """A turn of the model in a history, with the tools that it called."""
    message: Json = {"role": "assistant", "content": text}
    return message | {"tool_calls": list(calls)} if calls else message


def function_call(call_id: str, name: str, arguments: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tools_of(functions: Sequence[tuple[str, str, object]]) -> list[Json]:
    """Tools by name, description and schema of their arguments."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": described, "parameters": object_of(schema)},
        }
        for name, described, schema in functions
    ]


def _reason(answer: ModelAnswer) -> str:
    if answer.tool_calls:
        return "tool_calls"
    return "length" if answer.is_cut_off else "stop"
