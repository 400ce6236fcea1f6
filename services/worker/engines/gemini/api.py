"""The API of the engine `gemini`: Google's generateContent. It chats, and can be held to given texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from services.worker.engines import engine
from services.worker.engines.chat_messages import refuse_more_than_text, require_chat, split_system
from services.worker.engines.gemini.responses import (
    GeminiStream,
    generates,
    read_error,
    read_generated,
    read_model,
)
from services.worker.engines.http.client import Dialect, Endpoint, HttpExchange
from services.worker.engines.http.provider_engine import cut_at_stops, read_pages
from services.worker.engines.json_values import Json, objects_of, text_of
from services.worker.engines.unsupported import (
    JsonForm,
    asked_by_row,
    refuse_parameters,
    refuse_rest,
    take_json_form,
)

_NAME = "Gemini"
_CAPABILITIES = engine.EngineCapabilities(
    loglikelihood=False, chat=True, completion=False, constrained=True, seed=True, logprobs=False
)
_UNKNOWN_PARAMETERS = ("repetition_penalty", "context_tokens")
# What of a run's own parameters stands beside the configuration of the generation.
_REQUEST_FIELDS = frozenset({"safetySettings", "cachedContent", "serviceTier"})
# What a row may ask for, in Gemini's own words.
_OF_ROWS = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
_ROLES = {"assistant": "model"}
_MOST_STOPS = 5
_PAGE = 1000


class GeminiApi:
    name = _NAME

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = HttpExchange(endpoint, Dialect(key_headers, read_error, needs_key_of=_NAME))

    async def answer(self, model: str, prompt: engine.Prompt, sampling: engine.Sampling) -> engine.Generated:
        require_chat(prompt, _NAME)
        name = quote(self._endpoint.server_model(model), safe="")
        body = sampling_fields(sampling) | prompt_fields(prompt)
        stream = GeminiStream() if sampling.is_streamed else None
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        answer = await self._http.ask(f"/models/{name}:{method}", body, stream)
        generated = answer.timed(read_generated(answer.document))
        return cut_at_stops(generated, sampling.stop[_MOST_STOPS:])

    async def list_models(self) -> tuple[engine.ModelInfo, ...]:
        """Without the models that generate nothing, such as those that embed."""
        return await read_pages(self._read_page)

    async def _read_page(self, token: str) -> tuple[list[engine.ModelInfo], str]:
        page = f"&pageToken={quote(token, safe='')}" if token else ""
        document = await self._http.get(f"/models?pageSize={_PAGE}{page}")
        listed = [each for each in objects_of(document.get("models")) if generates(each)]
        models = [read_model(each, self._endpoint.provider, _CAPABILITIES) for each in listed]
        return models, text_of(document.get("nextPageToken"))

    def facts(self) -> Mapping[str, str]:
        return self._endpoint.facts("gemini")

    async def close(self) -> None:
        await self._http.close()


def key_headers(key: str) -> Mapping[str, str]:
    """In a header, since addresses are written into logs on the way."""
    return {"x-goog-api-key": key}


def prompt_fields(prompt: engine.Prompt) -> Json:
    refuse_more_than_text(prompt.messages, _NAME)
    system, turns = split_system(prompt.messages)
    contents = [
        {"role": _ROLES.get(each.role, each.role), "parts": [{"text": each.content}]} for each in turns
    ]
    return {"contents": contents} | ({"systemInstruction": {"parts": [{"text": system}]}} if system else {})


def sampling_fields(sampling: engine.Sampling) -> Json:
    """Only what was set is sent. Ours win over extras."""
    refuse_parameters(sampling, _UNKNOWN_PARAMETERS, _NAME)
    extra = dict(sampling.extra)
    fields = {name: extra.pop(name) for name in _REQUEST_FIELDS & extra.keys()}
    optional = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "seed": sampling.seed,
        "stopSequences": list(sampling.stop[:_MOST_STOPS]) or None,
    }
    chosen = {name: value for name, value in optional.items() if value is not None}
    config = extra | _row_fields(sampling) | chosen | _constraint(sampling.allowed_texts)
    return fields | {"generationConfig": config}


def _row_fields(sampling: engine.Sampling) -> Json:
    asked = asked_by_row(sampling)
    form = _json_form(take_json_form(asked))
    named = {own: asked.pop(name) for name, own in _OF_ROWS.items() if name in asked}
    refuse_rest(asked, _NAME)
    return named | form


def _json_form(form: JsonForm | None) -> Json:
    if form is None:
        return {}
    schema = {} if form.schema is None else {"responseJsonSchema": form.schema}
    return {"responseMimeType": "application/json"} | schema


def _constraint(texts: Sequence[str]) -> Json:
    if not texts:
        return {}
    return {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": list(texts)}}
