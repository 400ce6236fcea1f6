"""Tools that a model may call, read from the OpenAI protocol for servers that write them in another way."""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson

from proctor.values import openai
from proctor.values.outcome import Answer
from proctor.values.plain import Json
from proctor.values.sample import ChatMessage
from proctor.values.usage import TokenUsage
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.engines.parsed_json import object_of, objects_of, text_of

# The finish reason of an answer that calls tools.
TOOL_CALLS = "tool_calls"
_OWN_ID = "call_proctor_"
_CALL_FIELDS = frozenset({"id", "type", "function", "index"})
# What a server needs back beside the calls, unchanged: DeepSeek, OpenRouter, Anthropic.
KEPT_FIELDS = ("reasoning_content", "reasoning_details", "thinking_blocks")
# Words of the OpenAI protocol.
ToolChoice = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is a JSON object as text. `extra` are the provider's own fields, which it needs back."""

    call_id: str
    name: str
    arguments: str
    extra: Json = field(default_factory=dict)

    @property
    def arguments_object(self) -> Json:
        """Empty where the text is not a JSON object."""
        try:
            return object_of(orjson.loads(self.arguments))
        except orjson.JSONDecodeError:
            return {}

    @property
    def own_id(self) -> str:
        """The id that the provider gave; empty where it gave none."""
        return "" if self.call_id.startswith(_OWN_ID) else self.call_id

    def as_json(self) -> Json:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.call_id, "type": "function", "function": function, **self.extra}


@dataclass(frozen=True, slots=True)
class Tool:
    """A function; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Json

    def as_json(self) -> Json:
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The tools of a request. `name` is set where this one must be called."""

    tools: tuple[Tool, ...]
    choice: ToolChoice = "auto"
    name: str = ""


def pop_tools(fields: dict[str, object]) -> ToolRequest | None:
    """Removes `tools` and `tool_choice`; None without tools. Raises RequestRefused."""
    listed, chosen = fields.pop("tools", None), fields.get("tool_choice")
    if not listed:
        return None
    functions = [object_of(each.get("function")) for each in objects_of(listed)]
    tools = tuple(
        Tool(text_of(each.get("name")), text_of(each.get("description")), object_of(each.get("parameters")))
        for each in functions
    )
    if not tools or not all(tool.name for tool in tools):
        raise RequestRefused("The line's tools must be functions, each with a name.")
    fields.pop("tool_choice", None)
    match chosen:
        case None | "auto":
            return ToolRequest(tools)
        case "none" | "required":
            return ToolRequest(tools, chosen)
        case {"type": "function", "function": {"name": str(name)}}:
            return ToolRequest(tools, "required", name)
    raise RequestRefused("The line's tool_choice is neither auto, none nor required, nor a function by name.")


def tools_of(sampling: Sampling) -> ToolRequest | None:
    """The tools that a row asks for. Raises RequestRefused."""
    return pop_tools(dict(sampling.row_extra))


def shown_tools(sampling: Sampling) -> ToolRequest | None:
    """The tools that a model may choose to call. Raises RequestRefused."""
    asked = tools_of(sampling)
    return None if asked is None or asked.choice == "none" else asked


def calls_in(message: Mapping[str, object]) -> list[ToolCall]:
    """The calls of a message of the protocol. One without an id gets one, which no other of it has."""
    calls: list[ToolCall] = []
    for index, each in enumerate(objects_of(message.get("tool_calls"))):
        function = object_of(each.get("function"))
        call_id = text_of(each.get("id")) or f"{_OWN_ID}{index}"
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
        extra = {name: value for name, value in each.items() if name not in _CALL_FIELDS}
        calls.append(ToolCall(call_id, text_of(function.get("name")), text, extra))
    return calls


def new_call(call: Json, arguments: object, extra: Json | None = None) -> ToolCall:
    """A call in an answer of a provider with a form of its own; `arguments` is an object."""
    call_id = text_of(call.get("id")) or f"{_OWN_ID}{uuid.uuid4().hex}"
    text = orjson.dumps(object_of(arguments)).decode()
    return ToolCall(call_id, text_of(call.get("name")), text, extra or {})


def with_calls(
    answer: Answer,
    usage: TokenUsage,
    calls: Sequence[ToolCall],
    model: str,
    kept: Mapping[str, object] | None = None,
) -> Answer:
    """The answer with a body in the form of the protocol, where it calls tools. `kept` are fields of it."""
    if not calls:
        return answer
    head = openai.CompletionHead("proctor", int(time.time()), model)
    choice = openai.choice(answer.text, TOOL_CALLS)
    choice["message"] |= {"tool_calls": [call.as_json() for call in calls], **(kept or {})}
    body = orjson.dumps(openai.completion(head, [choice], usage)).decode()
    return replace(answer, finish_reason=TOOL_CALLS, body_json=body)


def with_call_ids(answer: Answer) -> Answer:
    """The answer with an id for each call that has none: no other call of its conversation has it."""
    body = object_of(orjson.loads(answer.body_json)) if answer.body_json else {}
    unnamed = [call for call in _listed_calls(body) if not call.get("id")]
    if not unnamed:
        return answer
    for call in unnamed:
        call["id"] = f"{_OWN_ID}{uuid.uuid4().hex}"
    return replace(answer, body_json=orjson.dumps(body).decode())


def called_tools(answer: Answer) -> list[ToolCall]:
    """The tools that an answer calls."""
    return calls_in(_message(answer))


def answered_turn(answer: Answer) -> ChatMessage:
    """The answer as the turn of a history, with its calls and what the provider needs back."""
    message = _message(answer)
    calls = calls_in(message)
    if not calls:
        return ChatMessage("assistant", answer.text)
    kept = {name: message[name] for name in KEPT_FIELDS if message.get(name)}
    fields = {"tool_calls": [call.as_json() for call in calls], **kept}
    return ChatMessage("assistant", answer.text, orjson.dumps(fields).decode())


def result_turn(call_id: str, content: str) -> ChatMessage:
    """The result of a call as the turn of a history."""
    return ChatMessage("tool", content, orjson.dumps({"tool_call_id": call_id}).decode())


def _listed_calls(body: Json) -> list[Json]:
    choices = objects_of(body.get("choices"))
    return objects_of(object_of(choices[0].get("message")).get("tool_calls")) if choices else []


def _message(answer: Answer) -> Json:
    """The message in the body of an answer, which is there where it is more than a text."""
    if not answer.body_json:
        return {}
    choices = objects_of(object_of(orjson.loads(answer.body_json)).get("choices"))
    return object_of(choices[0].get("message")) if choices else {}
