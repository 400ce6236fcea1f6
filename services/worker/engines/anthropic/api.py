"""The API of the engine `anthropic`: the Messages API, which only chats and constrains no answer."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from proctor.values.plain import Json
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.providers.rules import RULES
from proctor.values.sample import Prompt
from services.worker.engines.anthropic.responses import (
    AnthropicStream,
    parse_error,
    read_answer,
    read_model,
)
from services.worker.engines.chat_messages import require_chat
from services.worker.engines.chat_turns import Turn, split_system, turns_of, with_results_joined
from services.worker.engines.engine import Sampling
from services.worker.engines.http.ports import Request
from services.worker.engines.http.provider_engine import read_pages, refuse_scoring
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.server import ServerDialect
from services.worker.engines.http.usage import anthropic_usage
from services.worker.engines.parsed_json import objects_of, text_of
from services.worker.engines.row_params import (
    needs_full_response,
    refuse_constraint,
    refuse_parameters,
    refuse_temperature,
    refuse_unsupported,
    row_fields,
)
from services.worker.engines.tool_calls import ToolRequest, pop_tools

_RULES = RULES["anthropic"]
_API_VERSION = "2026-10-21"
# The API requires a limit; this one is used where none is set.
_MAX_TOKENS = 4096
# The most that the API returns at a time.
_PAGE = 1000
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")


def key_headers(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": _API_VERSION}


class AnthropicApi:
    dialect = ServerDialect(key_headers, parse_error, needs_key_of=_RULES, read_usage=anthropic_usage)
    capabilities = ModelCapabilities(chat=True)
    facts: Mapping[str, str] = {
        "engine": "anthropic",
        "api_version": _API_VERSION,
        "sampling": "the provider's own; it takes no temperature",
    }

    def generation(self, model: str, prompt: Prompt, sampling: Sampling) -> Request:
        require_chat(prompt, _RULES.name)
        body = sampling_fields(sampling) | {"model": model, **prompt_fields(prompt)}
        cut_at = [stop for stop in sampling.stop if not stop.strip()]
        if not sampling.is_streamed or needs_full_response(sampling):
            return Request("/v1/messages", body, read_answer, cut_at=cut_at)
        return Request("/v1/messages", body | {"stream": True}, read_answer, AnthropicStream(), cut_at=cut_at)

    def scoring(self, *_: object) -> Request:
        refuse_scoring(_RULES.name)

    async def list_models(self, http: QueryClient) -> tuple[ModelInfo, ...]:
        async def read_page(last: str) -> tuple[list[ModelInfo], str]:
            after = f"&after_id={quote(last, safe='')}" if last else ""
            document = await http.get(f"/v1/models?limit={_PAGE}{after}")
            models = [read_model(each) for each in objects_of(document.get("data"))]
            return models, text_of(document.get("last_id")) if document.get("has_more") is True else ""

        return await read_pages(read_page)


def prompt_fields(prompt: Prompt) -> Json:
    system, turns = split_system(turns_of(prompt.messages, _RULES.name))
    messages = [_message(together) for together in with_results_joined(turns)]
    return {"messages": messages} | ({"system": system} if system else {})


def _message(together: Sequence[Turn]) -> Json:
    turn = together[0]
    if turn.is_result:
        return {"role": "user", "content": [block for each in together for block in _blocks(each)]}
    return {"role": turn.role, "content": _blocks(turn) if turn.calls else turn.content}


def _blocks(turn: Turn) -> list[Json]:
    """The thoughts before a call are signed, and needed back unchanged."""
    if turn.is_result:
        return [{"type": "tool_result", "tool_use_id": _id(turn.call_id), "content": turn.content}]
    blocks = objects_of(turn.fields.get("thinking_blocks"))
    # The API refuses a block of no text.
    if turn.content.strip():
        blocks.append({"type": "text", "text": turn.content})
    return blocks + [
        {"type": "tool_use", "id": _id(call.call_id), "name": call.name, "input": call.arguments_object}
        for call in turn.calls
    ]


def _id(call_id: str) -> str:
    """The API takes letters, digits, - and _ only; another provider or a program may use more."""
    return _NOT_IN_IDS.sub("_", call_id)


def _tools(asked: ToolRequest | None) -> Json:
    if asked is None:
        return {}
    declared = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": {"type": "object", **tool.parameters},
        }
        for tool in asked.tools
    ]
    choice = {"type": "tool", "name": asked.name} if asked.name else {"type": _CHOICES[asked.choice]}
    return {"tools": declared, "tool_choice": choice}


def sampling_fields(sampling: Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    refuse_constraint(sampling, _RULES.name)
    refuse_parameters(sampling, _RULES)
    row = row_fields(sampling)
    tools = _tools(pop_tools(row))
    refuse_unsupported(row, _RULES.name)
    refuse_temperature(sampling, _RULES)
    # The API refuses stop sequences of white space alone; those are applied to the answer.
    stops = [stop for stop in sampling.stop if stop.strip()]
    chosen = {"stop_sequences": stops} if stops else {}
    return dict(sampling.extra) | {"max_tokens": sampling.max_tokens or _MAX_TOKENS} | chosen | tools
