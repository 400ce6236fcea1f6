"""The API of the engine `ollama`: Ollama's own API, which sizes the context and loads models by request."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial

from proctor.values.plain import Json
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.providers.rules import RULES
from proctor.values.sample import Prompt
from services.worker.engines.chat_turns import Turn, turns_of
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import EngineFailure, RequestRefused
from services.worker.engines.http.ports import Request
from services.worker.engines.http.provider_engine import refuse_scoring
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.server import ServerDialect
from services.worker.engines.ollama.responses import (
    OllamaStream,
    is_generative,
    read_answer,
    read_loaded,
    read_model,
)
from services.worker.engines.parsed_json import choice_schema, objects_of
from services.worker.engines.row_params import (
    needs_full_response,
    pop_json_schema,
    refuse_unsupported,
    row_fields,
)
from services.worker.engines.tool_calls import ToolRequest, pop_tools

_NAME = RULES["ollama"].name
# Provider parameters that belong beside the model; all others are options of the model.
_REQUEST_FIELDS = frozenset({"keep_alive", "think", "truncate", "shift"})
_PARAMETERS = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "stop": "stop",
    "repetition_penalty": "repeat_penalty",
    "context_tokens": "num_ctx",
}
# Fields of a row that become options or belong beside the model. Ollama drops others silently.
_ROW_OPTIONS = frozenset(
    {"presence_penalty", "frequency_penalty", "min_p", "typical_p", "repeat_last_n", "num_ctx"}
)
_ROW_FIELDS = frozenset({"think"})
# By default Ollama silently cuts off the beginning of a prompt that is too long.
_NO_SILENT_CUTS = {"truncate": False, "shift": False}
# Ollama reads a model's file for each; one after the other a long list takes seconds.
_PARALLEL_SHOWS = 4


class OllamaApi:
    dialect = ServerDialect()
    capabilities = ModelCapabilities(chat=True, completion=True, constrained=True, seed=True)
    facts: Mapping[str, str] = {"engine": "ollama"}

    def generation(self, model: str, prompt: Prompt, sampling: Sampling) -> Request:
        is_streamed = sampling.is_streamed and not needs_full_response(sampling)
        stream = OllamaStream(is_chat=prompt.is_chat) if is_streamed else None
        body = {"model": model, "stream": stream is not None, **prompt_fields(prompt)}
        path = "/api/chat" if prompt.is_chat else "/api/generate"
        read = partial(read_answer, is_json=bool(sampling.allowed_texts))
        return Request(path, sampling_fields(sampling) | body, read, stream)

    def scoring(self, *_: object) -> Request:
        refuse_scoring(_NAME)

    async def list_models(self, http: QueryClient) -> Iterable[ModelInfo]:
        """Lists models, without those for embeddings."""
        document = await http.get("/api/tags")
        tags = [each for each in objects_of(document.get("models")) if each.get("model")]
        gate = asyncio.Semaphore(_PARALLEL_SHOWS)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(_running(http), name="list loaded models")
            asked = [group.create_task(_show(http, each, gate), name="show model") for each in tags]
        loaded = read_loaded(running.result())
        listed = ((tag, task.result()) for tag, task in zip(tags, asked, strict=True))
        return [read_model(tag, shown, loaded) for tag, shown in listed if is_generative(shown)]


async def _running(http: QueryClient) -> Json:
    """The loaded models, where the server is new enough to list them."""
    with suppress(EngineFailure):
        return await http.get("/api/ps")
    return {}


async def _show(http: QueryClient, tag: Json, gate: asyncio.Semaphore) -> Json:
    """A model without details is listed with what is known."""
    async with gate:
        with suppress(EngineFailure):
            return await http.post("/api/show", {"model": tag["model"]})
    return {}


def prompt_fields(prompt: Prompt) -> Json:
    """A text is continued as it is, without the model's template."""
    if prompt.is_chat:
        return {"messages": [_message(turn) for turn in turns_of(prompt.messages, _NAME)]}
    return {"prompt": prompt.as_text, "raw": True}


def sampling_fields(sampling: Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    extra = dict(sampling.extra)
    fields = {name: extra.pop(name) for name in _REQUEST_FIELDS & extra.keys()}
    row = row_fields(sampling)
    form = _answer_format(sampling, row) | _tools(pop_tools(row))
    options = extra | {name: row.pop(name) for name in _ROW_OPTIONS & row.keys()}
    fields |= {name: row.pop(name) for name in _ROW_FIELDS & row.keys()}
    refuse_unsupported(row, _NAME)
    return _NO_SILENT_CUTS | fields | form | {"options": options | sampling.named(_PARAMETERS)}


def _message(turn: Turn) -> Json:
    """Arguments of calls are objects there, and a result names its tool instead of its call."""
    message: Json = {"role": turn.role, "content": turn.content}
    if turn.calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": call.arguments_object}} for call in turn.calls
        ]
        if thinking := turn.fields.get("reasoning_content"):
            message["thinking"] = thinking
    return message | ({"tool_name": turn.tool} if turn.is_result else {})


def _tools(asked: ToolRequest | None) -> Json:
    """A model there always chooses itself."""
    if asked is None or asked.choice == "none":
        return {}
    if asked.choice != "auto":
        raise RequestRefused(f"{_NAME} takes no tool_choice but auto and none.")
    return {"tools": [tool.as_json() for tool in asked.tools]}


def _answer_format(sampling: Sampling, row: dict[str, object]) -> Json:
    schema = pop_json_schema(row)
    if sampling.allowed_texts:
        return {"format": choice_schema(sampling.allowed_texts)}
    return {} if schema is None else {"format": schema or "json"}
