"""Part of `vllm_program.py`: asks the engine rows of a data set."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proctor.values.providers.pool import PoolModel
from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.errors import RequestRefused
from services.worker.engines.row_params import apply_row_params, read_row_params
from services.worker.engines.tool_calls import Tool, ToolRequest
from services.worker.engines.vllm.called_tools import called_tools_of
from services.worker.engines.vllm.engine import VllmEngine
from tests.integration.worker.engines.vllm.vllm_models import (
    CHAT,
    FIRST,
    GREEDY,
    QUESTION,
    THINKING,
    Seen,
    failure_of,
)

OPEN = engine.Sampling(max_tokens=None, temperature=None, is_row=True)
ASKED = ToolRequest((Tool("f", "", {}),))
SCHEMA = {
    "type": "object",
    "properties": {"n": {"enum": [7]}},
    "required": ["n"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]
WRITTEN_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
REFUSED: Mapping[str, Mapping[str, Any]] = {
    "tools": {"tools": TOOLS, "tool_choice": "required"},
    "tools_n": {"tools": TOOLS, "n": 2, "temperature": 1},
    "unknown": {"no_such": 1},
    "kind": {"stop_token_ids": ["x"]},
    "bias": {"logit_bias": {"x": 1}},
    "greedy_n": {"n": 2, "temperature": 0},
    "temperature": {"temperature": -1},
    "logprobs": {"logprobs": True, "top_logprobs": 1000},
    "form": {"response_format": {"type": "grammar"}},
}


def asked(**params: object) -> engine.Sampling:
    read = read_row_params(json.dumps(params))
    if read.refusal:
        raise RequestRefused(read.refusal)
    return apply_row_params(read, OPEN, 0)


def message(content: str, role: str = "user", fields: Mapping[str, object] | None = None) -> ChatMessage:
    return ChatMessage(role, content, json.dumps(fields) if fields else "")


async def see_rows(vllm: VllmEngine) -> Seen:
    async def answer(prompt: Prompt, **params: object) -> engine.EngineResponse:
        return await vllm.generate(FIRST, prompt, asked(**params))

    parts = Prompt(messages=(message("a\nb", fields={"content": [text_part("a"), text_part("b")]}),))
    image = Prompt(messages=(message("a", fields={"content": [text_part("a"), {"type": "image_url"}]}),))
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    called = Prompt(
        messages=(
            message("Go."),
            message("", "assistant", {"tool_calls": [call]}),
            message("4", "tool", {"tool_call_id": "c"}),
        )
    )
    too_long = replace(asked(ignore_eos=True, max_tokens=None), truncate_left=True)
    return {
        "open": (await answer(QUESTION, ignore_eos=True)).usage.completion_tokens,
        "own": (await answer(QUESTION, ignore_eos=True, max_completion_tokens=3)).usage.completion_tokens,
        "cut": (await vllm.generate(FIRST, Prompt("good " * 3000), too_long)).usage.prompt_tokens,
        "plain_body": (await answer(CHAT, temperature=0, user="u", n=1)).answer.body_json,
        "several": json.loads((await answer(CHAT, n=3, seed=1, temperature=1)).answer.body_json),
        "chat_logprobs": json.loads((await answer(CHAT, logprobs=True, top_logprobs=2)).answer.body_json),
        "text_logprobs": json.loads((await answer(QUESTION, logprobs=1, max_tokens=4)).answer.body_json),
        "biased": (await answer(QUESTION, logit_bias={"70": 100}, max_tokens=2, ignore_eos=True)).answer.text,
        "schema": (await answer(CHAT, max_tokens=60, response_format=json_schema())).answer.text,
        "chosen": (await answer(CHAT, structured_outputs={"choice": ["seven"]})).answer.text,
        "tool_call": await tool_call(vllm, "auto"),
        "no_tool_call": await tool_call(vllm, "none"),
        "no_parser": await failure_of(
            asyncio.to_thread(called_tools_of, PoolModel("vllm/x", "/x"), None, ASKED)
        ),
        "parts": (await answer(parts, max_tokens=2)).usage.prompt_tokens,
        "joined": (await answer(Prompt(messages=(message("a\nb"),)), max_tokens=2)).usage.prompt_tokens,
        "called": (await answer(called, max_tokens=2, ignore_eos=True)).usage.completion_tokens,
        "image": await failure_of(answer(image)),
        "refused": {name: await failure_of(answer(CHAT, **params)) for name, params in REFUSED.items()},
        "thought": await see_thoughts(vllm),
        # After all of that the engine is as it was.
        "still": (await answer(QUESTION, ignore_eos=True)).usage.completion_tokens,
    }


async def see_thoughts(vllm: VllmEngine) -> Seen:
    """The same answer from a model with a parser and from one without."""
    plain = (await vllm.generate(FIRST, CHAT, GREEDY)).answer
    thought = await vllm.generate(THINKING, CHAT, GREEDY)
    row = asked(n=2, seed=1, temperature=1, max_tokens=4, ignore_eos=True)
    several = json.loads((await vllm.generate(THINKING, CHAT, row)).answer.body_json)
    chosen = await vllm.generate(THINKING, CHAT, asked(structured_outputs={"choice": ["seven"]}))
    return {
        "plain": [plain.text, plain.reasoning],
        "thought": [thought.answer.text, thought.answer.reasoning],
        "continued": (await vllm.generate(THINKING, QUESTION, GREEDY)).answer.reasoning,
        "several": [choice["message"] for choice in several["choices"]],
        "chosen": [chosen.answer.text, chosen.answer.reasoning],
        "facts": dict(await vllm.describe()),
    }


async def tool_call(vllm: VllmEngine, choice: str) -> Seen:
    """A weak model is made to write the call."""
    made = {"structured_outputs": {"choice": [WRITTEN_CALL]}, "max_tokens": 120}
    answer = (await vllm.generate(FIRST, CHAT, asked(tools=TOOLS, tool_choice=choice, **made))).answer
    return {"text": answer.text, "finish_reason": answer.finish_reason, "body": answer.body_json}


def text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def json_schema() -> dict[str, object]:
    return {"type": "json_schema", "json_schema": {"name": "seven", "schema": SCHEMA}}
