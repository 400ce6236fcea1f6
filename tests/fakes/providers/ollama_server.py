"""A small server that answers as Ollama documents: chat, completion, tags, show, and its errors."""

from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.providers.model_server import answer_text, json_response
from tests.fakes.providers.provider_server import SERVER, ErrorResponse, Json, ProviderServer
from tests.fakes.providers.shell_answers import shell_step
from tests.fakes.providers.streamed_answers import NDJSON, json_lines, ollama_lines, streamed

NANOSECONDS = 1_000_000_000
MIN_CONTEXT = 4096
_LOADING = frozenset({"/api/chat", "/api/generate"})


def error(status: int, message: str) -> ErrorResponse:
    """Nothing but a sentence."""
    return ErrorResponse(status, {"error": message})


def chat_answer(text: str, *, thinking: str | None = None, **facts: Any) -> Json:
    message = {"role": "assistant", "content": text} | ({"thinking": thinking} if thinking else {})
    return {**_frame(text), "message": message, **facts}


def shell_answer(body: Json) -> Json | None:
    """A step of a rollout; None for another chat. Calls have no ids, and objects as arguments."""
    messages = body["messages"]
    done = sum(message["role"] == "assistant" for message in messages)
    step = shell_step(messages[0]["content"], messages[1]["content"], done) if len(messages) > 1 else None
    if step is None:
        return None
    if not body.get("tools"):
        return chat_answer(step.block)
    document = chat_answer(step.text)
    document["message"]["tool_calls"] = [{"function": {"name": "bash", "arguments": step.arguments}}]
    return document


def completion_answer(text: str, **facts: Any) -> Json:
    return {**_frame(text), "response": text, **facts}


def _frame(text: str) -> Json:
    return {
        "model": "fake",
        "created_at": "2026-11-01T12:00:00.000000Z",
        "done": True,
        "done_reason": "stop",
        "total_duration": 3 * NANOSECONDS,
        "load_duration": NANOSECONDS,
        "prompt_eval_count": 26,
        "prompt_eval_duration": NANOSECONDS // 10,
        "eval_count": len(text.split()),
        "eval_duration": NANOSECONDS,
    }


def tag(name: str, **details: str) -> Json:
    return {
        "name": name,
        "model": name,
        "modified_at": "2026-10-01T12:00:00Z",
        "size": 1_321_098_329,
        "digest": "baf6a787fdffd633537aa2eb51cfd54cb93ff08e28040095462bb63daf552878",
        "details": {"family": "llama", "format": "gguf", "quantization_level": "Q4_K_M", **details},
    }


# The shape of Llama 3.2 1B.
SHAPE = {
    "llama.block_count": 16,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
    "llama.embedding_length": 2048,
}
LOADED_BYTES = 2_101_098_329


def running(name: str) -> Json:
    """A model that is loaded."""
    facts = {"size": LOADED_BYTES, "size_vram": LOADED_BYTES, "expires_at": "2026-11-01T12:05:00Z"}
    return {**tag(name), **facts, "context_length": MIN_CONTEXT}


def shown(name: str) -> Json:
    capability = "embedding" if name.startswith("embed") else "completion"
    return {
        "details": tag(name)["details"],
        "model_info": {"general.architecture": "llama", "llama.context_length": 131072} | SHAPE,
        "capabilities": [capability],
    }


def _refusal(server: ProviderServer, body: Json) -> ErrorResponse | None:
    if body.get("model") not in server.models:
        return error(404, f"model '{body.get('model')}' not found")
    options = body.get("options", {})
    if not isinstance(options, dict):
        return error(400, "json: cannot unmarshal options")
    if body.get("tools") and body["model"] in server.models_without_tools:
        return error(400, f"registry.ollama.ai/library/{body['model']}:latest does not support tools")
    words = len(orjson.dumps(body.get("messages") or body.get("prompt")).split())
    if words > options.get("num_ctx", MIN_CONTEXT) and body.get("truncate") is False:
        return error(400, "the input length exceeds the context length")
    return None


def _text(body: Json, prompt: str) -> str:
    """By rule; held to a schema it is an object with the first of what is allowed in each field."""
    if "format" not in body:
        return answer_text(prompt)
    fields = body["format"]["properties"]
    return orjson.dumps({name: schema["enum"][0] for name, schema in fields.items()}).decode()


async def chat(request: web.Request) -> web.StreamResponse:
    server = request.app[SERVER]
    body = await request.json()
    refused = _refusal(server, body)
    if refused is not None:
        return refused.response()
    prompt = "\n".join(message["content"] for message in body["messages"])
    return _response(server, body, server.answer or shell_answer(body) or chat_answer(_text(body, prompt)))


async def generate(request: web.Request) -> web.StreamResponse:
    server = request.app[SERVER]
    body = await request.json()
    refused = _refusal(server, body)
    if refused is not None:
        return refused.response()
    return _response(server, body, server.answer or completion_answer(_text(body, body["prompt"])))


def _response(server: ProviderServer, body: Json, answer: Json) -> web.Response:
    """It streams unless the request says otherwise."""
    if not server.streams or body.get("stream") is False:
        return json_response(answer)
    return streamed(server.stream_body or json_lines(ollama_lines(answer)), NDJSON)


async def tags(request: web.Request) -> web.StreamResponse:
    return json_response({"models": [tag(name) for name in request.app[SERVER].models]})


async def show(request: web.Request) -> web.StreamResponse:
    name = (await request.json())["model"]
    return error(500, "broken blob").response() if name.startswith("broken") else json_response(shown(name))


async def list_running(request: web.Request) -> web.StreamResponse:
    """What was asked is loaded, as long as the server lives."""
    server = request.app[SERVER]
    names = dict.fromkeys(asked.body.get("model") for asked in server.asked if asked.path in _LOADING)
    return json_response({"models": [running(name) for name in names if name in server.models]})


ROUTES: Sequence[web.RouteDef] = (
    web.post("/api/chat", chat),
    web.post("/api/generate", generate),
    web.get("/api/tags", tags),
    web.get("/api/ps", list_running),
    web.post("/api/show", show),
)
# A server that is too old to list what is loaded has these.
ROUTES_BEFORE_PS = tuple(route for route in ROUTES if route.path != "/api/ps")
