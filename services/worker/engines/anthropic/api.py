"""The API of the engine `anthropic`: the Messages API, which only chats and constrains no answer."""

from collections.abc import Mapping
from urllib.parse import quote

from proctor.values.providers import RULES, ModelCapabilities, ModelInfo
from proctor.values.sample import Prompt
from services.worker.engines import engine
from services.worker.engines.anthropic.responses import (
    AnthropicStream,
    parse_error,
    read_generated,
    read_model,
)
from services.worker.engines.chat_messages import require_chat, split_system, text_objects
from services.worker.engines.http.client import Dialect, Endpoint, HttpClient
from services.worker.engines.http.provider_engine import cut_at_stops, read_pages
from services.worker.engines.json_values import Json, objects_of, text_of
from services.worker.engines.row_params import (
    refuse_constraint,
    refuse_parameters,
    refuse_temperature,
    refuse_unsupported,
    row_fields,
)

_RULES = RULES["anthropic"]
_CAPABILITIES = ModelCapabilities(
    loglikelihood=False, chat=True, completion=False, constrained=False, seed=False, logprobs=False
)
_API_VERSION = "2026-10-21"
# The API requires a limit; this one is used where none is set.
_MAX_TOKENS = 4096
_PAGE = 1000


class AnthropicApi:
    name = _RULES.name

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = HttpClient(endpoint, Dialect(key_headers, parse_error, needs_key_of=_RULES.name))

    async def answer(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.Generated:
        require_chat(prompt, _RULES.name)
        body = {"model": self._endpoint.server_model(model), **prompt_fields(prompt)}
        stream = AnthropicStream() if sampling.is_streamed else None
        fields = sampling_fields(sampling) | body | ({"stream": True} if stream else {})
        response = await self._http.send("/v1/messages", fields, stream)
        generated = response.with_timing(read_generated(response.document))
        return cut_at_stops(generated, [stop for stop in sampling.stop if not stop.strip()])

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return await read_pages(self._read_page)

    async def _read_page(self, last: str) -> tuple[list[ModelInfo], str]:
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


def prompt_fields(prompt: Prompt) -> Json:
    system, turns = split_system(prompt.messages)
    return {"messages": text_objects(turns, _RULES.name)} | ({"system": system} if system else {})


def sampling_fields(sampling: engine.Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    refuse_constraint(sampling, _RULES.name)
    refuse_parameters(sampling, _RULES)
    refuse_unsupported(row_fields(sampling), _RULES.name)
    refuse_temperature(sampling, _RULES)
    # The API refuses stop sequences of white space alone; those are applied to the answer.
    stops = [stop for stop in sampling.stop if stop.strip()]
    chosen = {"stop_sequences": stops} if stops else {}
    return dict(sampling.extra) | {"max_tokens": sampling.max_tokens or _MAX_TOKENS} | chosen
