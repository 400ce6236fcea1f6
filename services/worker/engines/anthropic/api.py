"""The API of the engine `anthropic`: the Messages API, which only chats and constrains no answer."""

from collections.abc import Mapping
from urllib.parse import quote

from proctor.values.plain import Json
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.providers.rules import RULES
from proctor.values.sample import Prompt
from services.worker.engines.anthropic.responses import (
    AnthropicStream,
    parse_error,
    read_generated,
    read_model,
)
from services.worker.engines.chat_messages import require_chat, split_system, text_objects
from services.worker.engines.engine import Generated, Sampling, ScoredChoices
from services.worker.engines.http.ports import Request
from services.worker.engines.http.provider_engine import read_pages, refuse_scoring
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.server import ServerDialect
from services.worker.engines.parsed_json import objects_of, text_of
from services.worker.engines.row_params import (
    refuse_constraint,
    refuse_parameters,
    refuse_temperature,
    refuse_unsupported,
    row_fields,
)

_RULES = RULES["anthropic"]
_API_VERSION = "2026-10-21"
# The API requires a limit; this one is used where none is set.
_MAX_TOKENS = 4096
# The most that the API returns at a time.
_PAGE = 1000


def key_headers(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": _API_VERSION}


class AnthropicApi:
    dialect = ServerDialect(key_headers, parse_error, needs_key_of=_RULES.name)
    capabilities = ModelCapabilities(chat=True)
    facts: Mapping[str, str] = {
        "engine": "anthropic",
        "api_version": _API_VERSION,
        "sampling": "the provider's own; it takes no temperature",
    }

    def generation(self, model: str, prompt: Prompt, sampling: Sampling) -> Request[Generated]:
        require_chat(prompt, _RULES.name)
        body = sampling_fields(sampling) | {"model": model, **prompt_fields(prompt)}
        cut_at = [stop for stop in sampling.stop if not stop.strip()]
        if not sampling.is_streamed:
            return Request("/v1/messages", body, read_generated, cut_at=cut_at)
        return Request("/v1/messages", body | {"stream": True}, read_generated, AnthropicStream(), cut_at)

    def scoring(self, *_: object) -> Request[ScoredChoices]:
        refuse_scoring(_RULES.name)

    async def list_models(self, http: QueryClient) -> tuple[ModelInfo, ...]:
        async def read_page(last: str) -> tuple[list[ModelInfo], str]:
            after = f"&after_id={quote(last, safe='')}" if last else ""
            document = await http.get(f"/v1/models?limit={_PAGE}{after}")
            models = [read_model(each) for each in objects_of(document.get("data"))]
            return models, text_of(document.get("last_id")) if document.get("has_more") is True else ""

        return await read_pages(read_page)


def prompt_fields(prompt: Prompt) -> Json:
    system, turns = split_system(prompt.messages)
    return {"messages": text_objects(turns, _RULES.name)} | ({"system": system} if system else {})


def sampling_fields(sampling: Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    refuse_constraint(sampling, _RULES.name)
    refuse_parameters(sampling, _RULES)
    refuse_unsupported(row_fields(sampling), _RULES.name)
    refuse_temperature(sampling, _RULES)
    # The API refuses stop sequences of white space alone; those are applied to the answer.
    stops = [stop for stop in sampling.stop if stop.strip()]
    chosen = {"stop_sequences": stops} if stops else {}
    return dict(sampling.extra) | {"max_tokens": sampling.max_tokens or _MAX_TOKENS} | chosen
