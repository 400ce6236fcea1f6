"""Contents of Gemini's API, as its command line speaks them, in the form of chat completions."""

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

_NAMES = {
    "maxOutputTokens": "max_tokens",
    "temperature": "temperature",
    "topP": "top_p",
    "stopSequences": "stop",
}
STREAMED = ":streamGenerateContent"


class GeminiContents:
    """The path names the model, and whether the answer is streamed."""

    def read(self, body: Json, path: str) -> ModelCall:
        turns = [turn for content in objects_of(body.get("contents")) for turn in _turns(content)]
        if not turns:
            raise CallRefused(400, "contents is missing.")
        if system := _text(object_of(body.get("systemInstruction"))):
            turns.insert(0, {"role": "system", "content": system})
        config = object_of(body.get("generationConfig"))
        params: dict[str, object] = {
            ours: config[theirs] for theirs, ours in _NAMES.items() if config.get(theirs) is not None
        }
        declared = [
            each
            for tool in objects_of(body.get("tools"))
            for each in objects_of(tool.get("functionDeclarations"))
        ]
        if declared:
            params["tools"] = tools_of(
                [
                    (
                        text_of(each.get("name")),
                        text_of(each.get("description")),
                        each.get("parametersJsonSchema") or each.get("parameters"),
                    )
                    for each in declared
                ]
            )
        model = path.rpartition("/")[2].partition(":")[0]
        messages = tuple(chat_message(turn) for turn in turns)
        return ModelCall(messages, params, model, path.endswith(STREAMED))

    def answer(self, call: ModelCall, answer: ModelAnswer) -> Json:
        parts: list[Json] = [{"text": answer.text}] if answer.text else []
        parts += [
            {"functionCall": {"id": each.call_id, "name": each.name, "args": each.arguments_object}}
            for each in answer.tool_calls
        ]
        usage = answer.usage
        candidate = {
            "index": 0,
            "content": {"role": "model", "parts": parts},
            "finishReason": "MAX_TOKENS" if answer.is_cut_off else "STOP",
        }
        return {
            "candidates": [candidate],
            "modelVersion": call.model,
            "usageMetadata": {
                "promptTokenCount": usage.prompt_tokens,
                "cachedContentTokenCount": usage.cached_tokens,
                "candidatesTokenCount": usage.completion_tokens,
                "totalTokenCount": usage.total_tokens,
            },
        }

    def events(self, call: ModelCall, answer: ModelAnswer) -> Sequence[Event]:
        return [("", self.answer(call, answer))]

    def error(self, refused: CallRefused) -> Json:
        return {"error": {"code": refused.status, "message": str(refused), "status": "INVALID_ARGUMENT"}}


def _turns(content: Json) -> Iterator[Json]:
    """Calls of tools have no ids of their own: they are named after their tool and its place."""
    parts = objects_of(content.get("parts"))
    calls: list[Json] = []
    for part in parts:
        if called := object_of(part.get("functionCall")):
            name = text_of(called.get("name"))
            arguments = orjson.dumps(object_of(called.get("args"))).decode()
            calls.append(function_call(text_of(called.get("id")) or name, name, arguments))
        if answered := object_of(part.get("functionResponse")):
            call_id = text_of(answered.get("id")) or text_of(answered.get("name"))
            output = orjson.dumps(answered.get("response")).decode()
            yield {"role": "tool", "tool_call_id": call_id, "content": output}
    text = _text(content)
    if content.get("role") == "model":
        yield assistant_message(text, calls)
    elif text:
        yield {"role": "user", "content": text}


def _text(content: Json) -> str:
    parts = objects_of(content.get("parts"))
    return "".join(text_of(part.get("text")) for part in parts if not part.get("thought"))
