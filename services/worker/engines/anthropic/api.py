"""The API of the engine `anthropic`: the Messages API, which chats and constrains no answer."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from services.worker.engines import engine
from services.worker.engines.anthropic.responses import (
    AnthropicStream,
    read_error,
    read_generated,
    read_model,
)
from services.worker.engines.chat_messages import require_chat, split_system, text_objects
from services.worker.engines.http.client import Dialect, Endpoint, HttpExchange
from services.worker.engines.http.provider_engine import cut_at_stops, read_pages
from services.worker.engines.json_values import Json, objects_of, text_of
from services.worker.engines.unsupported import (
    asked_by_row,
    refuse_constraint,
    refuse_parameters,
    refuse_rest,
)

_NAME = "Anthropic"
_CAPABILITIES = engine.EngineCapabilities(
    loglikelihood=False, chat=True, completion=False, constrained=False, seed=False, logprobs=False
)
_API_VERSION = "2026-10-21"
# This version of the API refuses them all, even at their defaults.
_UNKNOWN_PARAMETERS = ("top_p", "top_k", "seed", "repetition_penalty", "context_tokens")
# The sampling that there is, and what a task of a suite says where nobody asks for another.
_TEMPERATURE, _GREEDY = 1.0, 0.0
# The API takes no request without a limit, so there is one for who leaves it open.
_MAX_TOKENS = 4096
_PAGE = 1000


class AnthropicApi:
    name = _NAME

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = HttpExchange(endpoint, Dialect(key_headers, read_error, needs_key_of=_NAME))

    async def answer(self, model: str, prompt: engine.Prompt, sampling: engine.Sampling) -> engine.Generated:
        require_chat(prompt, _NAME)
        body = {"model": self._endpoint.server_model(model), **prompt_fields(prompt)}
        stream = AnthropicStream() if sampling.is_streamed else None
        fields = sampling_fields(sampling) | body | ({"stream": True} if stream else {})
        answer = await self._http.ask("/v1/messages", fields, stream)
        generated = answer.timed(read_generated(answer.document))
        return cut_at_stops(generated, [stop for stop in sampling.stop if not stop.strip()])

    async def list_models(self) -> tuple[engine.ModelInfo, ...]:
        return await read_pages(self._read_page)

    async def _read_page(self, last: str) -> tuple[list[engine.ModelInfo], str]:
        after = f"&after_id={quote(last, safe='')}" if last else ""
        document = await self._http.get(f"/v1/models?limit={_PAGE}{after}")
        listed = objects_of(document.get("data"))
        models = [read_model(each, self._endpoint.provider, _CAPABILITIES) for each in listed]
        return models, text_of(document.get("last_id")) if document.get("has_more") is True else ""

    def facts(self) -> Mapping[str, str]:
        sampling = "the provider's own; it takes no temperature"
        return {**self._endpoint.facts("anthropic"), "api_version": _API_VERSION, "sampling": sampling}

    async def close(self) -> None:
        await self._http.close()


def key_headers(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": _API_VERSION}


def prompt_fields(prompt: engine.Prompt) -> Json:
    system, turns = split_system(prompt.messages)
    return {"messages": text_objects(turns, _NAME)} | ({"system": system} if system else {})


def sampling_fields(sampling: engine.Sampling) -> Json:
    """Only what was set is sent. Ours win over extras."""
    refuse_constraint(sampling, _NAME)
    refuse_parameters(sampling, _UNKNOWN_PARAMETERS, _NAME)
    refuse_rest(asked_by_row(sampling), _NAME)
    _refuse_temperature(sampling)
    # The API refuses a sequence of white space alone; such a one is looked for in the answer.
    stops = [stop for stop in sampling.stop if stop.strip()]
    chosen = {"stop_sequences": stops} if stops else {}
    return dict(sampling.extra) | {"max_tokens": sampling.max_tokens or _MAX_TOKENS} | chosen


def _refuse_temperature(sampling: engine.Sampling) -> None:
    """What a row says is its own wish, also where it is greedy: it is kept to or refused."""
    taken = {None, _TEMPERATURE} if sampling.is_row else {None, _TEMPERATURE, _GREEDY}
    if sampling.temperature not in taken:
        refuse_parameters(sampling, ("temperature",), _NAME)
