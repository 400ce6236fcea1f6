"""A small server that answers as Google documents for Gemini: generateContent, models, and its errors."""

from collections.abc import Sequence

from aiohttp import web

from tests.fakes.providers.model_server import answer_text, json_response
from tests.fakes.providers.provider_server import SERVER, ErrorResponse, Json, ProviderServer
from tests.fakes.providers.shell_answers import shell_step
from tests.fakes.providers.streamed_answers import gemini_chunks, server_sent, streamed

_ROLES = frozenset({"user", "model"})
_MAX_STOPS = 5
SIGNATURE = "Cg8BVKhc7kk="


def error(status: int, word: str, message: str, *details: Json) -> ErrorResponse:
    """Shaped as google.rpc.Status."""
    fields = {"code": status, "message": message, "status": word, "details": list(details)}
    return ErrorResponse(status, {"error": fields})


def retry_info(delay: str) -> Json:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def wrong_key(key: str | None) -> ErrorResponse:
    """Not a 401."""
    detail = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    }
    return error(400, "INVALID_ARGUMENT", f"API key {key} not valid. Pass a valid API key.", detail)


def answer(text: str, *, thought: str = "", finish_reason: str = "STOP", usage: Json | None = None) -> Json:
    """Without a text the content has no parts."""
    thoughts = [{"text": thought, "thought": True}] if thought else []
    parts = thoughts + ([{"text": text}] if text else [])
    content = {"role": "model"} | ({"parts": parts} if parts else {})
    counted = {"promptTokenCount": 9, "candidatesTokenCount": len(text.split())}
    return {
        "candidates": [{"content": content, "finishReason": finish_reason, "index": 0}],
        "usageMetadata": usage or {**counted, "totalTokenCount": sum(counted.values())},
        "modelVersion": "fake",
        "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
    }


def shell_answer(body: Json) -> Json | None:
    """A step of a rollout; None for another chat."""
    system = "".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ()))
    done = sum(turn["role"] == "model" for turn in body["contents"])
    step = shell_step(system, body["contents"][0]["parts"][0].get("text", ""), done)
    if step is None:
        return None
    if "tools" not in body:
        return answer(step.block)
    document = answer(step.text)
    call = {"id": step.call_id, "name": "bash", "args": step.arguments}
    part = {"functionCall": call, "thoughtSignature": SIGNATURE}
    document["candidates"][0]["content"]["parts"].append(part)
    return document


def _call_problem(contents: Sequence[Json]) -> str:
    """As Gemini 3 refuses a history: calls without their signature, or without as many results."""
    for index, turn in enumerate(contents):
        calls = [part for part in turn["parts"] if "functionCall" in part]
        if not calls:
            continue
        if calls[0].get("thoughtSignature") != SIGNATURE:
            return "Function call is missing a thought_signature in functionCall parts."
        after = contents[index + 1]["parts"] if index + 1 < len(contents) else []
        results = [part["functionResponse"] for part in after if "functionResponse" in part]
        if [(each["id"], each["name"]) for each in results] != [
            (each["functionCall"]["id"], each["functionCall"]["name"]) for each in calls
        ]:
            return (
                "Please ensure that the number of function response parts is equal to the number of "
                "function call parts of the function call turn."
            )
    return ""


def blocked_prompt(reason: str) -> Json:
    """There are no candidates."""
    return {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 9}}


def listed(name: str) -> Json:
    method = "embedContent" if name.startswith("embed") else "generateContent"
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name.title(),
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": [method, "countTokens"],
    }


def _refused(server: ProviderServer, request: web.Request) -> ErrorResponse | None:
    key = request.headers.get("x-goog-api-key")
    return None if key == server.api_key else wrong_key(key)


def _invalid(server: ProviderServer, model: str, body: Json) -> ErrorResponse | None:
    if model not in server.models:
        return error(404, "NOT_FOUND", f"models/{model} is not found for API version v1beta")
    if not all(turn["role"] in _ROLES for turn in body["contents"]):
        return error(400, "INVALID_ARGUMENT", "Please use a valid role: user, model.")
    if len(body["generationConfig"].get("stopSequences", ())) > _MAX_STOPS:
        return error(400, "INVALID_ARGUMENT", "The number of stop sequences exceeds the limit of 5.")
    if problem := _call_problem(body["contents"]):
        return error(400, "INVALID_ARGUMENT", problem)
    return None


async def generate_content(request: web.Request) -> web.StreamResponse:
    server = request.app[SERVER]
    body = await request.json()
    refused = _refused(server, request) or _invalid(server, request.match_info["model"], body)
    if refused is not None:
        return refused.response()
    config = body["generationConfig"]
    prompt = "\n".join(part.get("text", "") for turn in body["contents"] for part in turn["parts"])
    is_enum = config.get("responseMimeType") == "text/x.enum"
    document = (
        server.answer
        or shell_answer(body)
        or answer(config["responseSchema"]["enum"][0] if is_enum else answer_text(prompt))
    )
    if not server.streams or request.match_info["method"] == "generateContent":
        return json_response(document)
    return streamed(server.stream_body or server_sent(gemini_chunks(document)))


async def list_models(request: web.Request) -> web.StreamResponse:
    """One model a page, so that a client has to turn pages."""
    server = request.app[SERVER]
    refused = _refused(server, request)
    if refused is not None:
        return refused.response()
    if server.answer is not None:
        return json_response(server.answer)
    at = int(request.query.get("pageToken", "0"))
    document: Json = {"models": [listed(name) for name in server.models[at : at + 1]]}
    if at + 1 < len(server.models):
        document["nextPageToken"] = str(at + 1)
    return json_response(document)


ROUTES: Sequence[web.RouteDef] = (
    web.post(r"/models/{model:.+}:{method:generateContent|streamGenerateContent}", generate_content),
    web.get("/models", list_models),
)
