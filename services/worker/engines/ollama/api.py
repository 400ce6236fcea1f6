"""The API of the engine `ollama`: Ollama's own API, which sizes the context and loads models by request."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from proctor.values.providers import ModelInfo
from proctor.values.sample import Prompt
from services.worker.engines import engine
from services.worker.engines.chat_messages import text_objects
from services.worker.engines.http.client import Dialect, Endpoint, HttpClient
from services.worker.engines.json_values import Json, choice_schema, objects_of
from services.worker.engines.ollama.responses import (
    OllamaStream,
    is_generative,
    read_generated,
    read_loaded,
    read_model,
)
from services.worker.engines.row_params import JsonFormat, pop_json_format, refuse_unsupported, row_fields

# Provider parameters that belong beside the model; all others are options of the model.
_REQUEST_FIELDS = frozenset({"keep_alive", "think", "truncate", "shift"})
# Fields of a row that become options or belong beside the model. Ollama drops others silently.
_ROW_OPTIONS = frozenset(
    {"presence_penalty", "frequency_penalty", "min_p", "typical_p", "repeat_last_n", "num_ctx"}
)
_ROW_FIELDS = frozenset({"keep_alive", "think"})
# By default Ollama silently cuts off the beginning of a prompt that is too long.
_NO_SILENT_CUTS = {"truncate": False, "shift": False}
_PARALLEL_SHOWS = 4


class OllamaApi:
    name = "Ollama"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = HttpClient(endpoint, Dialect())

    async def answer(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.Generated:
        stream = OllamaStream(is_chat=prompt.is_chat) if sampling.is_streamed else None
        body = {"model": self._endpoint.server_model(model), "stream": stream is not None}
        body |= prompt_fields(prompt)
        path = "/api/chat" if prompt.is_chat else "/api/generate"
        response = await self._http.send(path, sampling_fields(sampling) | body, stream)
        return response.with_timing(read_generated(response.document, is_json=bool(sampling.allowed_texts)))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Without models for embeddings."""
        document = await self._http.get("/api/tags")
        tags = [each for each in objects_of(document.get("models")) if each.get("model")]
        gate = asyncio.Semaphore(_PARALLEL_SHOWS)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self._running())
            asked = [group.create_task(self._show(each, gate)) for each in tags]
        loaded = read_loaded(running.result())
        listed = ((tag, task.result()) for tag, task in zip(tags, asked, strict=True))
        models = (read_model(tag, shown, loaded) for tag, shown in listed if is_generative(shown))
        return tuple(replace(each, model=f"{self._endpoint.provider}/{each.model}") for each in models)

    async def _running(self) -> Json:
        """The loaded models, where the server is new enough to list them."""
        with suppress(engine.EngineFailure):
            return await self._http.get("/api/ps")
        return {}

    async def _show(self, tag: Json, gate: asyncio.Semaphore) -> Json:
        """A model without details is listed with what is known."""
        async with gate:
            with suppress(engine.EngineFailure):
                return await self._http.post("/api/show", {"model": tag["model"]})
        return {}

    def facts(self) -> Mapping[str, str]:
        return self._endpoint.facts("ollama")

    async def close(self) -> None:
        await self._http.close()


def prompt_fields(prompt: Prompt) -> Json:
    """A text is continued as it is, without the model's template."""
    if prompt.is_chat:
        return {"messages": text_objects(prompt.messages, OllamaApi.name)}
    return {"prompt": prompt.as_text, "raw": True}


def sampling_fields(sampling: engine.Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    extra = dict(sampling.extra)
    fields = {name: extra.pop(name) for name in _REQUEST_FIELDS & extra.keys()}
    row = row_fields(sampling)
    form = _json_format(pop_json_format(row))
    options = extra | {name: row.pop(name) for name in _ROW_OPTIONS & row.keys()}
    fields |= {name: row.pop(name) for name in _ROW_FIELDS & row.keys()}
    refuse_unsupported(row, OllamaApi.name)
    optional = {
        "num_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "repeat_penalty": sampling.repetition_penalty,
        "num_ctx": sampling.context_tokens,
    }
    chosen = {name: value for name, value in optional.items() if value is not None}
    if sampling.allowed_texts:
        form = {"format": choice_schema(sampling.allowed_texts)}
    return _NO_SILENT_CUTS | fields | form | {"options": options | chosen}


def _json_format(form: JsonFormat | None) -> Json:
    return {} if form is None else {"format": "json" if form.schema is None else form.schema}
