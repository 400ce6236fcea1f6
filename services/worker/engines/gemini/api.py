"""The API of the engine `gemini`: Google's generateContent, which only chats and can constrain answers."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from proctor.values.providers import RULES, ModelCapabilities, ModelInfo
from proctor.values.sample import Prompt
from services.worker.engines import engine
from services.worker.engines.chat_messages import refuse_more_than_text, require_chat, split_system
from services.worker.engines.gemini.responses import (
    GeminiStream,
    generates,
    parse_error,
    read_generated,
    read_model,
)
from services.worker.engines.http.client import Dialect, Endpoint, HttpClient
from services.worker.engines.http.provider_engine import cut_at_stops, read_pages
from services.worker.engines.json_values import Json, objects_of, text_of
from services.worker.engines.row_params import (
    JsonFormat,
    pop_json_format,
    refuse_parameters,
    refuse_unsupported,
    row_fields,
)

_RULES = RULES["gemini"]
_CAPABILITIES = ModelCapabilities(
    loglikelihood=False, chat=True, completion=False, constrained=True, seed=True, logprobs=False
)
# Provider parameters that belong beside the generationConfig.
_REQUEST_FIELDS = frozenset({"safetySettings", "cachedContent", "serviceTier"})
# Fields of a row, and Gemini's names for them.
_ROW_FIELDS = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
_ROLES = {"assistant": "model"}
_MOST_STOPS = 5
_PAGE = 1000


class GeminiApi:
    name = _RULES.name

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = HttpClient(endpoint, Dialect(key_headers, parse_error, needs_key_of=_RULES.name))

    async def answer(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.Generated:
        require_chat(prompt, _RULES.name)
        name = quote(self._endpoint.server_model(model), safe="")
        body = sampling_fields(sampling) | prompt_fields(prompt)
        stream = GeminiStream() if sampling.is_streamed else None
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        response = await self._http.send(f"/models/{name}:{method}", body, stream)
        generated = response.with_timing(read_generated(response.document))
        return cut_at_stops(generated, sampling.stop[_MOST_STOPS:])

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Without models that generate nothing, such as those for embeddings."""
        return await read_pages(self._read_page)

    async def _read_page(self, token: str) -> tuple[list[ModelInfo], str]:
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
    """In a header, since URLs are written into logs on the way."""
    return {"x-goog-api-key": key}


def prompt_fields(prompt: Prompt) -> Json:
    refuse_more_than_text(prompt.messages, _RULES.name)
    system, turns = split_system(prompt.messages)
    contents = [
        {"role": _ROLES.get(each.role, each.role), "parts": [{"text": each.content}]} for each in turns
    ]
    return {"contents": contents} | ({"systemInstruction": {"parts": [{"text": system}]}} if system else {})


def sampling_fields(sampling: engine.Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    refuse_parameters(sampling, _RULES)
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
    fields = row_fields(sampling)
    form = _json_format(pop_json_format(fields))
    named = {own: fields.pop(name) for name, own in _ROW_FIELDS.items() if name in fields}
    refuse_unsupported(fields, _RULES.name)
    return named | form


def _json_format(form: JsonFormat | None) -> Json:
    if form is None:
        return {}
    schema = {} if form.schema is None else {"responseJsonSchema": form.schema}
    return {"responseMimeType": "application/json"} | schema


def _constraint(texts: Sequence[str]) -> Json:
    if not texts:
        return {}
    return {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": list(texts)}}
