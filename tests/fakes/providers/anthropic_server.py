"""A small server that answers as Anthropic documents: messages, models, and its errors."""

from collections.abc import Sequence

from aiohttp import web

from tests.fakes.providers.model_server import answer_text, json_response
from tests.fakes.providers.provider_server import SERVER, ErrorResponse, Json, ProviderServer
from tests.fakes.providers.shell_answers import shell_step
from tests.fakes.providers.streamed_answers import anthropic_events, named_events, streamed

# What the API version 2026-10-21 no longer knows, at any value.
_GONE = ("temperature", "top_p", "top_k")


def error(status: int, kind: str, message: str, retry_after: str | None = None) -> ErrorResponse:
    document = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CS"}
    return ErrorResponse(status, document, retry_after)


def message(
    text: str, *, thinking: str = "", stop_reason: str = "end_turn", usage: Json | None = None
) -> Json:
    """Without a text there is no block of text either."""
    thoughts = [{"type": "thinking", "thinking": thinking, "signature": "EqQBCgIYAh"}] if thinking else []
    said = [{"type": "text", "text": text, "citations": None}] if text else []
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": thoughts + said,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 12, "output_tokens": len(text.split())},
    }


def shell_answer(body: Json) -> Json | None:
    """A step of a rollout, thought over; None for another chat."""
    done = sum(turn["role"] == "assistant" for turn in body["messages"])
    step = shell_step(body.get("system", ""), str(body["messages"][0]["content"]), done)
    if step is None:
        return None
    if "tools" not in body:
        return message(step.block)
    document = message(step.text, thinking="I go on.", stop_reason="tool_use")
    call = {"type": "tool_use", "id": step.call_id, "name": "bash", "input": step.arguments}
    document["content"].append(call)
    return document


def _call_problem(turns: Sequence[Json]) -> str:
    """As the API refuses a history: calls whose thoughts are gone, or whose results do not follow."""
    for index, turn in enumerate(turns):
        blocks = turn["content"] if isinstance(turn["content"], list) else []
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if calls and not (blocks[0]["type"] == "thinking" and blocks[0]["signature"]):
            return "messages: Expected `thinking`, but found `tool_use`"
        after = turns[index + 1]["content"] if calls and index + 1 < len(turns) else []
        results = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
        if calls != results:
            return "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
    return ""


def refusal(text: str = "") -> Json:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could harm."}
    return {**message(text, stop_reason="refusal"), "stop_details": details}


def listed(name: str) -> Json:
    return {
        "type": "model",
        "id": name,
        "display_name": name.title(),
        "created_at": "2026-02-04T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200000,
        "max_tokens": 64000,
    }


def _refused(server: ProviderServer, request: web.Request) -> ErrorResponse | None:
    if request.headers.get("x-api-key") != server.api_key:
        return error(401, "authentication_error", f"invalid x-api-key {request.headers.get('x-api-key')}")
    if not request.headers.get("anthropic-version"):
        return error(400, "invalid_request_error", "anthropic-version: header is required")
    return None


def _invalid(server: ProviderServer, body: Json) -> ErrorResponse | None:
    if body.get("model") not in server.models:
        return error(404, "not_found_error", f"model: {body.get('model')}")
    gone = next((name for name in _GONE if name in body), None)
    if gone is not None:
        return error(400, "invalid_request_error", f"{gone}: Extra inputs are not permitted")
    if "max_tokens" not in body:
        return error(400, "invalid_request_error", "max_tokens: Field required")
    if not all(stop.strip() for stop in body.get("stop_sequences", ())):
        problem = "stop_sequences: each stop sequence must contain non-whitespace"
        return error(400, "invalid_request_error", problem)
    if not all(turn["role"] in ("user", "assistant") for turn in body["messages"]):
        return error(400, "invalid_request_error", "messages: Unexpected role")
    if problem := _call_problem(body["messages"]):
        return error(400, "invalid_request_error", problem)
    return None


async def answer_message(request: web.Request) -> web.StreamResponse:
    server = request.app[SERVER]
    body = await request.json()
    refused = _refused(server, request) or _invalid(server, body)
    if refused is not None:
        return refused.response()
    prompt = "\n".join(turn["content"] for turn in body["messages"] if isinstance(turn["content"], str))
    answer = server.answer or shell_answer(body) or message(answer_text(prompt))
    if not server.streams or body.get("stream") is not True:
        return json_response(answer)
    return streamed(server.stream_body or named_events(anthropic_events(answer)))


async def list_models(request: web.Request) -> web.StreamResponse:
    """One model a page, so that a client has to turn pages."""
    server = request.app[SERVER]
    refused = _refused(server, request)
    if refused is not None:
        return refused.response()
    after = request.query.get("after_id")
    at = server.models.index(after) + 1 if after else 0
    page = server.models[at : at + 1]
    return json_response(
        {
            "data": [listed(name) for name in page],
            "has_more": at + 1 < len(server.models),
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
        }
    )


ROUTES: Sequence[web.RouteDef] = (
    web.post("/v1/messages", answer_message),
    web.get("/v1/models", list_models),
)
