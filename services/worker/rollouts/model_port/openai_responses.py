"""Responses of OpenAI, as Codex speaks them, in the form of chat completions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from proctor.values.openai import SummedUsage
from proctor.values.plain import Json
from services.worker.engines.parsed_json import objects_of, text_of
from services.worker.rollouts.model_port.model_call import CallRefused, ModelAnswer, ModelCall
from services.worker.rollouts.model_port.openai_chat import (
    OpenAIChat,
    assistant_message,
    chat_message,
    function_call,
    tools_of,
)
from services.worker.rollouts.model_port.ports import Event

_ID = "resp_proctor"
_TEXTS = ("input_text", "output_text", "text")


class OpenAIResponses:
    def read(self, body: Json, path: str) -> ModelCall:  # noqa: ARG002  # the port
        turns = list(_turns(body.get("input")))
        if not turns:
            raise CallRefused(400, "input is missing.")
        if instructions := text_of(body.get("instructions")):
            turns.insert(0, {"role": "system", "content": instructions})
        names = {"max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p"}
        params: dict[str, object] = {
            ours: body[theirs] for theirs, ours in names.items() if body.get(theirs) is not None
        }
        functions = [each for each in objects_of(body.get("tools")) if each.get("type") == "function"]
        if functions:
            params["tools"] = tools_of(
                [
                    (text_of(each.get("name")), text_of(each.get("description")), each.get("parameters"))
                    for each in functions
                ]
            )
        messages = tuple(chat_message(turn) for turn in turns)
        return ModelCall(messages, params, text_of(body.get("model")), body.get("stream") is True)

    def answer(self, call: ModelCall, answer: ModelAnswer) -> Json:
        return _response(call, answer, _items(answer), "completed")

    def events(self, call: ModelCall, answer: ModelAnswer) -> Sequence[Event]:
        return [
            (str(event["type"]), {**event, "sequence_number": number})
            for number, event in enumerate(_events(call, answer))
        ]

    def error(self, refused: CallRefused) -> Json:
        return OpenAIChat().error(refused)


def _turns(given: object) -> Iterator[Json]:
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    for item in objects_of(given):
        match item.get("type") or "message":
            case "message":
                yield {"role": text_of(item.get("role")), "content": _text(item.get("content"))}
            case "function_call":
                call = function_call(
                    text_of(item.get("call_id")), text_of(item.get("name")), text_of(item.get("arguments"))
                )
                yield assistant_message("", [call])
            case "function_call_output":
                output = item.get("output")
                text = output if isinstance(output, str) else _text(output)
                yield {"role": "tool", "tool_call_id": text_of(item.get("call_id")), "content": text}
            case _:
                # Reasoning of an earlier answer, which other models cannot read.
                continue


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_of(each.get("text")) for each in objects_of(content) if each.get("type") in _TEXTS)


def _items(answer: ModelAnswer) -> list[Json]:
    items: list[Json] = []
    if answer.text or not answer.tool_calls:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append(
            {
                "type": "message",
                "id": "msg_proctor",
                "status": "completed",
                "role": "assistant",
                "content": content,
            }
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{each.call_id}",
            "status": "completed",
            "call_id": each.call_id,
            "name": each.name,
            "arguments": each.arguments,
        }
        for each in answer.tool_calls
    ]
    return items


def _response(call: ModelCall, answer: ModelAnswer, items: list[Json], status: str) -> Json:
    return {
        "id": _ID,
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": call.model,
        "output": items,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if answer.is_cut_off else None,
        "usage": asdict(SummedUsage.of(answer.usage)),
    }


def _events(call: ModelCall, answer: ModelAnswer) -> Iterator[Json]:
    items = _items(answer)
    yield {"type": "response.created", "response": _response(call, answer, [], "in_progress")}
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        if item["type"] == "message":
            position = {"item_id": item["id"], "output_index": index, "content_index": 0}
            yield {"type": "response.output_text.delta", **position, "delta": answer.text}
            yield {"type": "response.output_text.done", **position, "text": answer.text}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(call, answer, items, "completed")}
