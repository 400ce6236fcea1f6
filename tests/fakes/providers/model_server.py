"""A small real OpenAI-compatible server for tests: answers by rule, counts, and misbehaves on demand.

`python -m tests.fakes.providers.model_server --port 0` prints {"port": N} once it listens. A chat or a
completion is answered "The answer is <K>." with the word K after the last `KEY=` of the prompt, in a chat
with the model's name for WHO; where it is given options, see `choice_answers`, where it judges
`judge_verdicts`, and in a rollout `shell_answers`. Echo scoring is a hash of text alone: see `echo_scores`.
GET /stats counts; POST /ctl sets fault, latency and known continuations.
"""

import argparse
import asyncio
import gzip
import hashlib
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson
from aiohttp import web

from tests.fakes.providers.choice_answers import constrained_reply, free_reply
from tests.fakes.providers.echo_scores import echo_logprobs
from tests.fakes.providers.judge_verdicts import verdict_reply
from tests.fakes.providers.model_traffic import TrafficByAsker
from tests.fakes.providers.shell_answers import shell_message
from tests.fakes.providers.streamed_answers import SSE, openai_body
from tests.fakes.scheduler.token_bucket import RateLimit

FaultKind = Literal[
    "status",
    "half_body",
    "cut_off",
    "malformed",
    "swollen",
    "untyped",
    "hang",
    "silence",
    "slow",
    "drip",
    "paced",
    "reset",
]
_SWELLING_BYTES = 64 * 1024 * 1024
_KEY = re.compile(r"KEY=(\w+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, for the next `count` requests (None: until changed) or for a share of them.

    status: answers that status with `message` and Retry-After · half_body: promises a length, sends half,
    closes · cut_off: half, ended as if it were all · malformed: 200 and no JSON · swollen: the right
    answer with 64 MiB of nothing behind it, packed into little · untyped: the right answer as plain text ·
    hang: nothing for `seconds`, then closes · silence: half, then the same · slow: the right answer after
    `seconds` · drip: a byte of it every `seconds` · paced: a line of it every `seconds` · reset: closes at
    once.
    """

    kind: FaultKind
    status: int = 500
    retry_after: str | None = None
    message: str = "the server was made to fail"
    code: str | None = None
    seconds: float = 0.0
    count: int | None = None
    share: float = 1.0
    # Only requests that contain it.
    text: str = ""


# When its answers and its models were made, in seconds since 1970.
CREATED = 1793534400


@dataclass(slots=True)
class ModelServer:
    """The state behind the handlers: one per application, so tests do not see each other's counts."""

    models: tuple[str, ...] = ("fake",)
    api_key: str | None = None
    latency_seconds: float = 0.0
    fault: Fault | None = None
    rate_limit: RateLimit | None = None
    # Sent with every answer.
    headers: dict[str, str] = field(default_factory=dict)
    continuations: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    prompts: set[bytes] = field(default_factory=set)
    # Who asked: one for each connection.
    peers: set[object] = field(default_factory=set)
    in_flight: int = 0
    largest_in_flight: int = 0
    traffic: TrafficByAsker = field(default_factory=TrafficByAsker)
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    last_request: dict[str, Any] = field(default_factory=dict)
    # A server that knows no streaming ignores the request for it.
    streams: bool = True
    # What a test wants to be answered instead: a whole answer, or the body of a streamed one.
    answer: dict[str, Any] | None = None
    # The text of every free answer; "" for those that prompts ask for.
    answer_text: str = ""
    stream_body: bytes | None = None

    def next_fault(self, body: dict[str, Any]) -> Fault | None:
        fault = self.fault
        if fault is None or fault.text not in str(body) or self.rng.random() >= fault.share:
            return None
        if fault.count is not None:
            self.fault = replace(fault, count=fault.count - 1) if fault.count > 1 else None
        self.counts["faulted"] += 1
        return fault

    def stats(self) -> dict[str, Any]:
        return {
            **{name: self.counts[name] for name in ("requests", "answered", "faulted", "aborted", "limited")},
            "tokens": self.counts["tokens"],
            "in_flight": self.in_flight,
            "largest_in_flight": self.largest_in_flight,
            "distinct_prompts": len(self.prompts),
            "last_request": self.last_request,
            "traffic": self.traffic.stats(),
        }


SERVER = web.AppKey("SERVER", ModelServer)


def answer_text(prompt: str) -> str:
    if verdict := verdict_reply(prompt):
        return verdict
    keys = _KEY.findall(prompt)
    if keys:
        return f"The answer is {keys[-1]}."
    return free_reply(prompt) or "The answer is unknown."


def usage(prompt: str, answer: str) -> dict[str, Any]:
    prompt_tokens, completion_tokens = len(prompt.split()), len(answer.split())
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def chat_answer(body: dict[str, Any], free: str = "") -> dict[str, Any]:
    """`free` is the text of an answer that no choices constrain; "" for the one that the prompt asks for."""
    prompt = "\n".join(message["content"] for message in body["messages"])
    asked = free or answer_text(prompt).replace(" WHO.", f" {body['model']}.")
    text = constrained_reply(body, prompt) or asked
    message = shell_message(body["messages"], body.get("tools")) or {"role": "assistant", "content": text}
    text = message["content"]
    finish_reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": body["model"],
            "choices": [choice], "usage": usage(prompt, text)}  # fmt: skip


def completion_choice(server: ModelServer, index: int, prompt: str, body: dict[str, Any]) -> dict[str, Any]:
    echo = bool(body.get("echo"))
    text = constrained_reply(body, prompt) or f" {server.answer_text or answer_text(prompt)}"
    # The first model is the one of the reference scores; others are of another mind.
    salt = "" if body["model"] == server.models[0] else body["model"]
    logprobs = echo_logprobs(prompt, server.continuations, salt) if echo else None
    return {
        "index": index,
        "text": prompt + text if echo else text,
        "logprobs": logprobs,
        "finish_reason": "stop",
    }


def completion_answer(server: ModelServer, body: dict[str, Any]) -> dict[str, Any]:
    prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    echo = bool(body.get("echo"))
    choices = [completion_choice(server, i, prompt, body) for i, prompt in enumerate(prompts)]
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": CREATED,
        "model": body["model"],
        "choices": choices,
        "usage": usage(" ".join(prompts), "" if echo else choices[-1]["text"]),
    }


def json_response(payload: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        body=orjson.dumps(payload), status=status, content_type="application/json", headers=headers
    )


def error_response(
    status: int, message: str, code: str | None = None, retry_after: str | None = None
) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    headers = {"Retry-After": retry_after} if retry_after else None
    return json_response({"error": error}, status, headers)


async def misbehave(
    request: web.Request, fault: Fault, payload: bytes, content_type: str = "application/json"
) -> web.StreamResponse:
    """As the fault has it, with what would have been the answer."""
    match fault.kind:
        case "status":
            return error_response(fault.status, fault.message, fault.code, fault.retry_after)
        case "malformed":
            return web.Response(body=b'{"choices": [', content_type=content_type)
        case "swollen":
            packed = gzip.compress(payload + b" " * _SWELLING_BYTES, compresslevel=1)
            return web.Response(body=packed, content_type=content_type, headers={"Content-Encoding": "gzip"})
        case "untyped":
            return web.Response(body=payload, content_type="text/plain")
        case "cut_off":
            return web.Response(body=payload[: len(payload) // 2], content_type=content_type)
        case "half_body" | "silence" | "drip" | "paced":
            return await write_slowly(request, fault, payload, content_type)
        case "hang" | "slow":
            await asyncio.sleep(fault.seconds)
    if fault.kind == "slow":
        return web.Response(body=payload, content_type=content_type)
    return close_connection(request)


async def write_slowly(
    request: web.Request, fault: Fault, payload: bytes, content_type: str
) -> web.StreamResponse:
    """`seconds` after each piece; where it was half of what was promised, the connection is closed."""
    response = web.StreamResponse(headers={"Content-Type": content_type})
    response.content_length = None if fault.kind == "paced" else len(payload)
    await response.prepare(request)
    for piece in pieces_of(fault, payload):
        await response.write(piece)
        await asyncio.sleep(fault.seconds)
    return close_connection(request) if fault.kind in ("half_body", "silence") else response


def pieces_of(fault: Fault, payload: bytes) -> list[bytes]:
    if fault.kind == "paced":
        return payload.splitlines(keepends=True)
    if fault.kind == "drip":
        return [payload[at : at + 1] for at in range(len(payload))]
    return [payload[: len(payload) // 2]]


def close_connection(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def refusal(server: ModelServer, request: web.Request, body: dict[str, Any]) -> web.Response | None:
    if server.api_key is not None and request.headers.get("Authorization") != f"Bearer {server.api_key}":
        return error_response(401, "Incorrect API key provided: you gave me nonsense", "invalid_api_key")
    if body.get("model") not in server.models:
        return error_response(404, f"The model `{body.get('model')}` does not exist", "model_not_found")
    return None


async def answer_model_call(request: web.Request) -> web.StreamResponse:
    server = request.app[SERVER]
    server.counts["requests"] += 1
    server.peers.add(request.transport and request.transport.get_extra_info("peername"))
    server.in_flight += 1
    server.largest_in_flight = max(server.largest_in_flight, server.in_flight)
    try:
        return await answer_or_fail(server, request)
    except asyncio.CancelledError:
        server.counts["aborted"] += 1
        raise
    finally:
        server.in_flight -= 1


async def answer_or_fail(server: ModelServer, request: web.Request) -> web.StreamResponse:
    raw = await request.read()
    body = orjson.loads(raw)
    server.last_request = body
    server.prompts.add(hashlib.sha256(raw).digest()[:16])
    asker = request.match_info.get("asker") or str(body.get("model"))
    with server.traffic.of(asker).request():
        return await limited_answer(server, request, body)


async def limited_answer(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    if server.rate_limit is not None and not server.rate_limit.take():
        server.counts["limited"] += 1
        wait = server.rate_limit.retry_after()
        return error_response(429, "Rate limit reached for requests", "rate_limit_exceeded", wait)
    if server.latency_seconds:
        await asyncio.sleep(server.latency_seconds)
    refused = refusal(server, request, body)
    if refused is not None:
        return refused
    is_chat = request.path.endswith("/chat/completions")
    answer = server.answer or (
        chat_answer(body, server.answer_text) if is_chat else completion_answer(server, body)
    )
    is_streamed = server.streams and body.get("stream") is True
    payload = server.stream_body or openai_body(answer) if is_streamed else orjson.dumps(answer)
    content_type = SSE if is_streamed else "application/json"
    fault = server.next_fault(body)
    if fault is not None:
        return await misbehave(request, fault, payload, content_type)
    server.counts["answered"] += 1
    server.counts["tokens"] += answer.get("usage", {}).get("total_tokens", 0)
    return web.Response(body=payload, content_type=content_type, headers=server.headers)


async def list_models(request: web.Request) -> web.Response:
    server = request.app[SERVER]
    return json_response(
        {"object": "list", "data": [{"id": m, "object": "model", "created": CREATED} for m in server.models]}
    )


async def show_stats(request: web.Request) -> web.Response:
    return json_response(request.app[SERVER].stats())


async def control(request: web.Request) -> web.Response:
    """{"fault": {…} | null, "rate_limit": {…} | null, "latency_seconds": …, "reset_stats": true, …}"""
    server = request.app[SERVER]
    order = orjson.loads(await request.read())
    if "fault" in order:
        server.fault = Fault(**order["fault"]) if order["fault"] else None
    if "rate_limit" in order:
        server.rate_limit = RateLimit.ordered(order["rate_limit"]) if order["rate_limit"] else None
    server.headers = order.get("headers", server.headers)
    server.latency_seconds = order.get("latency_seconds", server.latency_seconds)
    server.continuations = tuple(order.get("continuations", server.continuations))
    server.answer_text = order.get("answer_text", server.answer_text)
    if order.get("reset_stats"):
        server.counts.clear()
        server.prompts.clear()
        server.traffic.forget()
        server.largest_in_flight = server.in_flight
    return json_response(server.stats())


def make_app(server: ModelServer) -> web.Application:
    app = web.Application(client_max_size=32 * 1024 * 1024)
    app[SERVER] = server
    # Who is given a base URL of its own, `/as/NAME/v1`, is counted apart.
    for base in ("/v1", "/as/{asker}/v1"):
        app.router.add_post(f"{base}/chat/completions", answer_model_call)
        app.router.add_post(f"{base}/completions", answer_model_call)
    app.router.add_get("/v1/models", list_models)
    app.router.add_get("/stats", show_stats)
    app.router.add_post("/ctl", control)
    return app


@asynccontextmanager
async def serving(server: ModelServer, port: int = 0) -> AsyncIterator[int]:
    """The server on a loopback port, which it gives."""
    runner = web.AppRunner(make_app(server), handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        # Many workers connect at once: who is not let in tries again after a second.
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def serve_until_stopped(server: ModelServer, port: int) -> None:
    stopped = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    async with serving(server, port) as bound_port:
        sys.stdout.write(orjson.dumps({"port": bound_port}).decode() + "\n")
        sys.stdout.flush()
        await stopped.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", action="append", help="a model it serves (default: fake)")
    parser.add_argument("--api-key")
    args = parser.parse_args()
    server = ModelServer(models=tuple(args.model or ["fake"]), api_key=args.api_key)
    asyncio.run(serve_until_stopped(server, args.port))


if __name__ == "__main__":
    main()
