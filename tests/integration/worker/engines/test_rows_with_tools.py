"""Tools of rows at engines with a form of their own: declared, called, and their results given back."""

import json
from typing import Any

import pytest

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.errors import RequestRefused
from services.worker.engines.row_params import apply_row_params, read_row_params
from tests.fakes.providers import anthropic_server, gemini_server, ollama_server
from tests.fakes.worker.provider_engines import ANTHROPIC, GEMINI, OLLAMA, Native, NativeStand, native_stand

OPEN = engine.Sampling(max_tokens=None, temperature=None, is_row=True, is_streamed=True)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "weather", "description": "Of a city.", "parameters": SCHEMA}
TOOLS = [{"type": "function", "function": FUNCTION}, {"type": "function", "function": {"name": "now"}}]
NAMED = {"type": "function", "function": {"name": "weather"}}


def asking(**params: Any) -> engine.Sampling:
    read = read_row_params(json.dumps({"tools": TOOLS, **params}))
    assert not read.refusal
    return apply_row_params(read, OPEN, 0)


def message(role: str, content: str, **fields: Any) -> ChatMessage:
    return ChatMessage(role, content, json.dumps(fields) if fields else "")


def called(call_id: str, city: str, **extra: Any) -> dict[str, Any]:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {"id": call_id, "type": "function", "function": function, **extra}


def signed(signature: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": signature}}}


def history(*calls: dict[str, Any], **fields: Any) -> Prompt:
    results = [message("tool", f"Result {each['id']}.", tool_call_id=each["id"]) for each in calls]
    said = message("assistant", "", tool_calls=list(calls), **fields)
    return Prompt(messages=(message("user", "KEY=seven"), said, *results))


async def asked(
    stand: NativeStand, prompt: Prompt, **params: Any
) -> tuple[engine.EngineResponse, dict[str, Any]]:
    response = await stand.asked.generate(stand.model, prompt, asking(**params))
    return response, stand.server.last_body


CALL, OTHER = called("a", "Rome", **signed(gemini_server.SIGNATURE)), called("b", "Bonn")
THOUGHTS = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]


async def test_gemini_gets_declarations_and_the_results_of_one_answer_in_one_turn() -> None:
    async with native_stand(GEMINI) as stand:
        _, body = await asked(stand, history(CALL, OTHER))
        assert body["tools"] == [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Of a city.", "parametersJsonSchema": SCHEMA},
                    {"name": "now", "description": ""},
                ]
            }
        ]
        assert body["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
        assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
        assert body["contents"][1]["parts"] == [
            {
                "functionCall": {"name": "weather", "args": {"city": "Rome"}, "id": "a"},
                "thoughtSignature": gemini_server.SIGNATURE,
            },
            {"functionCall": {"name": "weather", "args": {"city": "Bonn"}, "id": "b"}},
        ]
        assert body["contents"][2]["parts"][1]["functionResponse"] == {
            "name": "weather",
            "id": "b",
            "response": {"output": "Result b."},
        }
        _, body = await asked(stand, history(CALL), tool_choice=NAMED)
        assert body["toolConfig"]["functionCallingConfig"] == {
            "mode": "ANY",
            "allowedFunctionNames": ["weather"],
        }


async def test_anthropic_gets_thoughts_calls_and_results_as_blocks() -> None:
    async with native_stand(ANTHROPIC) as stand:
        odd = called("call:1", "Rome")
        _, body = await asked(stand, history(odd, OTHER, thinking_blocks=THOUGHTS), tool_choice="required")
        assert body["tools"] == [
            {"name": "weather", "description": "Of a city.", "input_schema": SCHEMA},
            {"name": "now", "description": "", "input_schema": {"type": "object"}},
        ]
        assert body["tool_choice"] == {"type": "any"}
        assert body["messages"][1]["content"] == [
            *THOUGHTS,
            {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}},
            {"type": "tool_use", "id": "b", "name": "weather", "input": {"city": "Bonn"}},
        ]
        assert body["messages"][2] == {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "Result call:1."},
                {"type": "tool_result", "tool_use_id": "b", "content": "Result b."},
            ],
        }
        _, body = await asked(stand, history(CALL, thinking_blocks=THOUGHTS), tool_choice=NAMED)
        assert body["tool_choice"] == {"type": "tool", "name": "weather"}


async def test_ollama_gets_arguments_as_objects_and_results_by_the_name_of_their_tool() -> None:
    async with native_stand(OLLAMA) as stand:
        _, body = await asked(stand, history(CALL, reasoning_content="Hm."))
        assert body["tools"][0] == TOOLS[0]
        assert body["messages"][1:] == [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}],
                "thinking": "Hm.",
            },
            {"role": "tool", "content": "Result a.", "tool_name": "weather"},
        ]
        assert "tools" not in (await asked(stand, history(CALL), tool_choice="none"))[1]
        with pytest.raises(RequestRefused, match="takes no tool_choice but auto and none"):
            await asked(stand, history(CALL), tool_choice="required")


def gemini_calls() -> dict[str, Any]:
    document = gemini_server.answer("I look.", thought="Hm.")
    call = {"name": "weather", "args": {"city": "Rome"}}
    document["candidates"][0]["content"]["parts"] += [
        {"functionCall": {**call, "id": "g1"}, "thoughtSignature": "sig"},
        {"functionCall": call},
    ]
    return document


def anthropic_calls() -> dict[str, Any]:
    document = anthropic_server.message("I look.", thinking="Hm.", stop_reason="tool_use")
    for call_id in ("t1", "t2"):
        block = {"type": "tool_use", "id": call_id, "name": "weather", "input": {"city": "Rome"}}
        document["content"].append(block)
    return document


def ollama_calls() -> dict[str, Any]:
    document = ollama_server.chat_answer("I look.", thinking="Hm.")
    call = {"function": {"name": "weather", "arguments": {"city": "Rome"}}}
    document["message"]["tool_calls"] = [call, call]
    return document


@pytest.mark.parametrize(
    ("native", "document", "kept"),
    [
        (GEMINI, gemini_calls(), {}),
        (ANTHROPIC, anthropic_calls(), {"thinking_blocks": "EqQBCgIYAh"}),
        (OLLAMA, ollama_calls(), {"reasoning_content": "Hm."}),
    ],
    ids=["gemini", "anthropic", "ollama"],
)
async def test_calls_in_an_answer_are_those_of_the_protocol(
    native: Native, document: dict[str, Any], kept: dict[str, str]
) -> None:
    async with native_stand(native) as stand:
        stand.server.answer = document
        response, _ = await asked(stand, Prompt(messages=(message("user", "KEY=seven"),)))
    body = json.loads(response.answer.body_json)
    [choice] = body["choices"]
    assert (body["object"], choice["finish_reason"]) == ("chat.completion", "tool_calls")
    assert (response.answer.text, response.answer.finish_reason) == ("I look.", "tool_calls")
    assert choice["message"]["content"] == "I look."
    calls = choice["message"]["tool_calls"]
    assert len({call["id"] for call in calls}) == 2
    assert all(call["function"]["name"] == "weather" for call in calls)
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"city": "Rome"}] * 2
    assert body["usage"]["total_tokens"] == response.usage.total_tokens > 0
    for name, part in kept.items():
        assert part in json.dumps(choice["message"][name])
    if native is GEMINI:
        assert calls[0]["extra_content"] == {"google": {"thought_signature": "sig"}}
        assert calls[0]["id"] == "g1"


@pytest.mark.parametrize("native", [GEMINI, ANTHROPIC, OLLAMA], ids=lambda native: native.name)
async def test_faulty_tools_and_fields_are_refused_by_name(native: Native) -> None:
    async with native_stand(native) as stand:
        with pytest.raises(RequestRefused, match="functions, each with a name"):
            await asked(stand, history(CALL), tools=[{"type": "function", "function": {}}])
        with pytest.raises(RequestRefused, match="neither auto, none nor required"):
            await asked(stand, history(CALL), tool_choice="some")
        with pytest.raises(RequestRefused, match="Message 2 of the line has audio"):
            await asked(stand, history(CALL, audio={"id": "x"}))
        assert not stand.server.asked
