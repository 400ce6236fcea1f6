"""The model at a sandbox's port: what programs speak is read as one call, and answered in their protocol."""

import json
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, AuthenticationError, BadRequestError

from proctor.values.agents.templates import TEMPLATES, filled
from proctor.values.usage import TokenUsage
from services.worker.engines.tool_calls import ToolCall
from services.worker.rollouts.model_port.http import served_model
from services.worker.rollouts.model_port.model_call import CallRefused, ModelAnswer, ModelCall

TOKEN = "the rollout's own"
ANSWER = ModelAnswer("Look.", [ToolCall("call_1", "shell", '{"command": "ls"}')], TokenUsage(10, 4, 6, 1))
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


@dataclass
class Model:
    """Gives one answer, and keeps the calls."""

    refusal: CallRefused | None = None
    calls: list[ModelCall] = field(default_factory=list)

    async def answer(self, call: ModelCall) -> ModelAnswer:
        self.calls.append(call)
        if self.refusal:
            raise self.refusal
        return ANSWER

    @property
    def turns(self) -> list[dict[str, Any]]:
        """Messages of the only call, as chat completions have them."""
        [call] = self.calls
        return [
            {"role": each.role, "content": each.content, **json.loads(each.fields_json or "{}")}
            for each in call.messages
        ]


@dataclass(frozen=True)
class Port:
    url: str
    model: Model

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, str]:
        timeout = aiohttp.ClientTimeout(total=20)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(f"{self.url}{path}", json=body, headers=headers) as response,
        ):
            return response.status, await response.text()

    def openai(self, token: str = TOKEN) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.url}/v1", api_key=token, max_retries=0, timeout=20)


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    model = Model()
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    async with served_model(listening, TOKEN, model.answer):
        yield Port(url, model)


TOOL = {"type": "function", "function": {"name": "shell", "description": "runs", "parameters": SCHEMA}}


async def test_the_client_of_openai_gets_text_tools_and_usage(port: Port) -> None:
    async with port.openai() as client:
        history: list[Any] = [
            {"role": "user", "content": [{"type": "text", "text": "Mend "}, {"type": "text", "text": "it."}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "type": "function",
             "function": {"name": "shell", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_0", "content": "a.py"},
        ]  # fmt: skip
        said = await client.chat.completions.create(
            model="any", messages=history, temperature=0.5, tools=[TOOL]  # type: ignore[list-item]  # a plain object
        )  # fmt: skip
    [call] = port.model.calls
    assert [message.content for message in call.messages] == ["Mend it.", "", "a.py"]
    assert port.model.turns[1]["tool_calls"][0]["id"] == port.model.turns[2]["tool_call_id"] == "call_0"
    assert call.params == {"temperature": 0.5, "tools": [TOOL]}
    [choice] = said.choices
    assert (choice.message.content, choice.finish_reason, said.model) == ("Look.", "tool_calls", "any")
    assert choice.message.tool_calls is not None
    assert choice.message.tool_calls[0].id == "call_1"
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.usage.completion_tokens) == (10, 4)


async def test_a_streamed_chat_is_read_by_the_client_of_openai(port: Port) -> None:
    async with port.openai() as client:
        stream = await client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": "Mend it."}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].content == "Look."
    [tool] = deltas[0].tool_calls or []
    assert tool.function is not None
    assert (tool.index, tool.function.arguments) == (0, '{"command": "ls"}')
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, "tool_calls"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 14
    assert port.model.calls[0].params == {}


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_responses_are_read_by_the_client_of_openai(port: Port, *, is_streamed: bool) -> None:
    given: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Mend it."}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "call_0", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "a.py"},
    ]
    tool: Any = {"type": "function", "name": "shell", "description": "runs", "parameters": SCHEMA}
    async with port.openai() as client:
        asked: dict[str, Any] = {"model": "any", "instructions": "Be brief.", "input": given, "tools": [tool]}
        if is_streamed:
            async with client.responses.stream(**asked, max_output_tokens=99) as stream:
                kinds = [event.type async for event in stream]
                said = await stream.get_final_response()
            assert "response.output_text.delta" in kinds
        else:
            said = await client.responses.create(**asked, max_output_tokens=99)
    assert said.output_text == "Look."
    [called] = [item for item in said.output if item.type == "function_call"]
    assert (called.call_id, called.arguments) == ("call_1", '{"command": "ls"}')
    assert said.usage is not None
    assert (said.usage.input_tokens, said.usage.output_tokens) == (10, 4)
    assert [turn["role"] for turn in port.model.turns] == ["system", "user", "assistant", "tool"]
    assert port.model.turns[2]["tool_calls"][0]["function"]["name"] == "shell"
    assert port.model.calls[0].params == {"max_tokens": 99, "tools": [TOOL]}


MESSAGES = {
    "model": "any",
    "max_tokens": 99,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Mend it."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_0", "name": "shell", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_0", "content": [{"type": "text", "text": "a"}]},
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
    "tools": [{"name": "shell", "description": "runs", "input_schema": SCHEMA}],
}


async def test_messages_of_anthropic_become_turns_and_blocks(port: Port) -> None:
    status, text = await port.post("/v1/messages", MESSAGES, **{"x-api-key": TOKEN})
    said = json.loads(text)
    assert (status, said["stop_reason"]) == (200, "tool_use")
    assert said["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "call_1", "name": "shell", "input": {"command": "ls"}},
    ]
    assert said["usage"] == {"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 4}
    turns = port.model.turns
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "tool", "user"]
    assert turns[2]["tool_calls"][0]["function"] == {"name": "shell", "arguments": '{"command":"ls"}'}
    assert (turns[3]["tool_call_id"], turns[3]["content"], turns[4]["content"]) == ("call_0", "a", "Go on.")
    assert port.model.calls[0].params == {"max_tokens": 99, "tools": [TOOL]}


async def test_streamed_messages_of_anthropic_have_their_events_in_order(port: Port) -> None:
    _, text = await port.post("/v1/messages", {**MESSAGES, "stream": True}, Authorization=f"Bearer {TOKEN}")
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert [event["type"] for event in events] == [
        "message_start", *block, *block, "message_delta", "message_stop",
    ]  # fmt: skip
    assert json.loads(events[5]["delta"]["partial_json"]) == {"command": "ls"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


async def test_the_client_of_anthropic_reads_a_stream(port: Port) -> None:
    async with (
        AsyncAnthropic(base_url=port.url, auth_token=TOKEN, max_retries=0, timeout=20) as client,
        client.messages.stream(
            model="any", max_tokens=99, messages=[{"role": "user", "content": "Mend it."}]
        ) as stream,
    ):
        said = await stream.get_final_message()
    assert [block.type for block in said.content] == ["text", "tool_use"]
    assert said.content[1].type == "tool_use"
    assert said.content[1].input == {"command": "ls"}
    assert (said.stop_reason, said.usage.output_tokens) == ("tool_use", 4)


@pytest.mark.parametrize("call", ["generateContent", "streamGenerateContent"])
async def test_contents_of_gemini_become_turns_and_parts(port: Port, call: str) -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Mend it."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "shell", "args": {"command": "ls"}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "shell", "response": {"output": "a"}}}],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "shell", "description": "runs", "parameters": SCHEMA}]}],
        "generationConfig": {"maxOutputTokens": 99},
    }
    status, text = await port.post(f"/v1beta/models/some:{call}?alt=sse", body, **{"x-goog-api-key": TOKEN})
    said = json.loads(text.removeprefix("data: "))
    assert (status, said["modelVersion"]) == (200, "some")
    assert said["candidates"][0]["content"]["parts"][1]["functionCall"]["args"] == {"command": "ls"}
    assert said["usageMetadata"]["totalTokenCount"] == 14
    turns = port.model.turns
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "tool"]
    assert turns[2]["tool_calls"][0]["id"] == turns[3]["tool_call_id"]
    assert port.model.calls[0].params == {"max_tokens": 99, "tools": [TOOL]}


async def test_only_the_token_of_the_rollout_is_let_in(port: Port) -> None:
    async with port.openai("another") as client:
        with pytest.raises(AuthenticationError, match="not that of this rollout"):
            await client.chat.completions.create(model="any", messages=[{"role": "user", "content": "x"}])
    status, text = await port.post("/v1/messages", MESSAGES)
    assert (status, json.loads(text)["error"]["type"]) == (401, "authentication_error")
    assert port.model.calls == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_what_cannot_be_read_is_refused(port: Port, path: str) -> None:
    bodies: list[object] = [[], {}, {"messages": "x", "input": 7}]
    for body in bodies:
        status, text = await port.post(path, body, **{"x-api-key": TOKEN})
        assert status == 400
        assert json.loads(text)["error"]["message"]
    assert port.model.calls == []


async def test_a_full_context_is_said_as_openai_says_it(port: Port) -> None:
    port.model.refusal = CallRefused(400, "It is too long.", "context_length_exceeded")
    async with port.openai() as client:
        with pytest.raises(BadRequestError) as refused:
            await client.chat.completions.create(model="any", messages=[{"role": "user", "content": "x"}])
    assert refused.value.code == "context_length_exceeded"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_names_instruction_token_and_port(name: str) -> None:
    template = TEMPLATES[name]
    values = {
        "instruction": "Use {token}.",
        "model": "m",
        "base_url": "B/v1",
        "root_url": "B",
        "token": TOKEN,
    }
    argv = [filled(each, values) for each in template.command]
    # An instruction is not a template, and is one argument.
    assert re.fullmatch(r"(--(message|prompt|task|text)=)?Use \{token\}\.", argv[-1])
    variables = [filled(each, values) for each in template.environment.values()]
    assert any(TOKEN in each for each in variables)
    assert any("B" in each for each in (*argv, *variables))
    assert not any(TOKEN in each for each in argv)
    if name == "opencode":
        assert json.loads(variables[0])["provider"]["run"]["options"]["apiKey"] == TOKEN
