"""The API of the engine `gemini`: Google's generateContent, which only chats and can constrain answers."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from proctor.values.plain import Json
from proctor.values.providers.models import ModelCapabilities, ModelInfo
from proctor.values.providers.rules import RULES
from proctor.values.sample import Prompt
from services.worker.engines.chat_messages import require_chat
from services.worker.engines.chat_turns import Turn, split_system, turns_of, with_results_joined
from services.worker.engines.engine import Sampling
from services.worker.engines.gemini.responses import (
    GeminiStream,
    generates,
    parse_error,
    read_answer,
    read_model,
    read_tool_answer,
    signature_of,
)
from services.worker.engines.http.ports import Request
from services.worker.engines.http.provider_engine import read_pages, refuse_scoring
from services.worker.engines.http.query_client import QueryClient
from services.worker.engines.http.server import ServerDialect
from services.worker.engines.http.usage import gemini_usage
from services.worker.engines.parsed_json import objects_of, text_of
from services.worker.engines.row_params import (
    needs_full_response,
    pop_json_schema,
    refuse_parameters,
    refuse_unsupported,
    row_fields,
)
from services.worker.engines.tool_calls import ToolCall, ToolRequest, pop_tools, tools_of

_RULES = RULES["gemini"]
# Provider parameters that belong beside the generationConfig.
_REQUEST_FIELDS = frozenset({"safetySettings", "cachedContent", "serviceTier"})
_PARAMETERS = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
}
# Fields of a row, and Gemini's names for them.
_ROW_FIELDS = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
_ROLES = {"assistant": "model", "tool": "user"}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
# The API takes five at most; the answer is cut at the others here.
_MAX_STOPS = 5
# The most that the API returns at a time.
_PAGE = 1000


def key_headers(key: str) -> Mapping[str, str]:
    """The key in a header, since URLs are written into logs on the way."""
    return {"x-goog-api-key": key}


class GeminiApi:
    dialect = ServerDialect(key_headers, parse_error, needs_key_of=_RULES, read_usage=gemini_usage)
    capabilities = ModelCapabilities(chat=True, constrained=True, seed=True)
    facts: Mapping[str, str] = {"engine": "gemini"}

    def generation(self, model: str, prompt: Prompt, sampling: Sampling) -> Request:
        require_chat(prompt, _RULES.name)
        path = f"/models/{quote(model, safe='')}"
        body = sampling_fields(sampling) | prompt_fields(prompt)
        cut_at = sampling.stop[_MAX_STOPS:]
        read = read_tool_answer if body.get("tools") else read_answer
        if not sampling.is_streamed or needs_full_response(sampling):
            return Request(f"{path}:generateContent", body, read, cut_at=cut_at)
        streaming = f"{path}:streamGenerateContent?alt=sse"
        return Request(streaming, body, read, GeminiStream(), cut_at=cut_at)

    def scoring(self, *_: object) -> Request:
        refuse_scoring(_RULES.name)

    async def list_models(self, http: QueryClient) -> tuple[ModelInfo, ...]:
        """Lists models, without those that generate nothing, such as those for embeddings."""

        async def read_page(token: str) -> tuple[list[ModelInfo], str]:
            page = f"&pageToken={quote(token, safe='')}" if token else ""
            document = await http.get(f"/models?pageSize={_PAGE}{page}")
            models = [read_model(each) for each in objects_of(document.get("models")) if generates(each)]
            return models, text_of(document.get("nextPageToken"))

        return await read_pages(read_page)


def prompt_fields(prompt: Prompt) -> Json:
    system, turns = split_system(turns_of(prompt.messages, _RULES.name))
    contents = [
        {
            "role": _ROLES.get(together[0].role, together[0].role),
            "parts": [part for turn in together for part in _parts(turn)],
        }
        for together in with_results_joined(turns)
    ]
    return {"contents": contents} | ({"systemInstruction": {"parts": [{"text": system}]}} if system else {})


def _parts(turn: Turn) -> list[Json]:
    if turn.is_result:
        response = {"name": turn.tool, "response": {"output": turn.content}}
        own = ToolCall(turn.call_id, turn.tool, "").own_id
        return [{"functionResponse": response | ({"id": own} if own else {})}]
    text: list[Json] = [{"text": turn.content}] if turn.content or not turn.calls else []
    return text + [_call(call) for call in turn.calls]


def _call(call: ToolCall) -> Json:
    """Newer models refuse a history whose calls lack the signatures that came with them."""
    function = {"name": call.name, "args": call.arguments_object}
    if call.own_id:
        function["id"] = call.own_id
    signature = signature_of(call.extra)
    return {"functionCall": function} | ({"thoughtSignature": signature} if signature else {})


def _tools(asked: ToolRequest | None) -> Json:
    if asked is None:
        return {}
    declared = [
        {"name": tool.name, "description": tool.description}
        # A function without parameters has no schema of them.
        | ({"parametersJsonSchema": tool.parameters} if tool.parameters else {})
        for tool in asked.tools
    ]
    config: Json = {"mode": _MODES[asked.choice]}
    if asked.name:
        config["allowedFunctionNames"] = [asked.name]
    return {"tools": [{"functionDeclarations": declared}], "toolConfig": {"functionCallingConfig": config}}


def sampling_fields(sampling: Sampling) -> Json:
    """Only parameters that are set; they win over the run's provider parameters."""
    refuse_parameters(sampling, _RULES)
    extra = dict(sampling.extra)
    fields = {name: extra.pop(name) for name in _REQUEST_FIELDS & extra.keys()}
    stops = {"stopSequences": list(sampling.stop[:_MAX_STOPS])} if sampling.stop else {}
    chosen = sampling.named(_PARAMETERS) | stops | _constraint(sampling.allowed_texts)
    tools = _tools(tools_of(sampling))
    return fields | tools | {"generationConfig": extra | _row_fields(sampling) | chosen}


def _row_fields(sampling: Sampling) -> Json:
    fields = row_fields(sampling)
    pop_tools(fields)
    schema = pop_json_schema(fields)
    named = {own: fields.pop(name) for name, own in _ROW_FIELDS.items() if name in fields}
    refuse_unsupported(fields, _RULES.name)
    if schema is None:
        return named
    any_or_schema = {"responseJsonSchema": schema} if schema else {}
    return named | {"responseMimeType": "application/json"} | any_or_schema


def _constraint(texts: Sequence[str]) -> Json:
    if not texts:
        return {}
    return {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": list(texts)}}
