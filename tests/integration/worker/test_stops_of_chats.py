"""Stops of a suite at a server that applies them to all that the model generates, reasoning included."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from proctor.values.outcome import Answer
from proctor.values.sample import ChatMessage, Prompt
from services.common.clock import SystemClock
from services.worker.engines.engine import Sampling
from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from services.worker.execution.execute_sample import ExecuteSample, RequestRetryPolicy
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.execution.shard import Shard, ShardSample
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.waits import Backoff
from tests.fakes.worker.held_message import a_shard
from tests.fakes.worker.refusing_sandboxes import refusing_check

THOUGHT = "<think>\nIs it Oslo?\n\nNo.\n</think>\n\n"
CHAT = Prompt(messages=(ChatMessage("user", "Which town?"),))


class StoppingServer:
    """What the model generates is cut at the first stop, as vLLM's server does."""

    def __init__(self) -> None:
        self.generated = ""
        self.parts: dict[str, str] = {}
        self.last_body: dict[str, Any] = {}

    async def answer(self, request: web.Request) -> web.Response:
        self.last_body = await request.json()
        stops = self.last_body.get("stop") or []
        ends = [at for stop in stops if (at := self.generated.find(stop)) >= 0]
        text = self.generated[: min(ends, default=None)]
        is_chat = request.path.endswith("/chat/completions")
        said = (
            {"message": {"role": "assistant", "content": text, **self.parts}} if is_chat else {"text": text}
        )
        choice = {"index": 0, "finish_reason": "stop", **said}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 9}})


@pytest.fixture
async def stand() -> AsyncIterator[tuple[StoppingServer, ExecuteSample]]:
    server, clock, backoff = StoppingServer(), SystemClock(), Backoff(0.001)
    app = web.Application()
    app.add_routes(
        [web.post("/v1/chat/completions", server.answer), web.post("/v1/completions", server.answer)]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    asked = HttpEngine(OpenAIApi(), Endpoint(f"http://127.0.0.1:{port}/v1", "openai", timeout_seconds=10))
    yield (
        server,
        ExecuteSample(
            engines=EngineCache(asked),
            clock=clock,
            request_retry_policy=RequestRetryPolicy(backoff, max_tries=1),
            rate_limiters=RateLimiters(clock=clock, backoff=backoff),
            run_states=RunStates(),
            refused_runs=RefusedRuns(clock),
            check_code=refusing_check(),
        ),
    )
    await asked.close()
    await runner.cleanup()


def asking(prompt: Prompt, *, keeps_reasoning: bool = False, **sampling: Any) -> Shard:
    return replace(
        a_shard(),
        samples=(ShardSample(0, prompt),),
        sampling=replace(Sampling(max_tokens=64, stop=("\n\n", "Q:")), **sampling),
        keeps_reasoning=keeps_reasoning,
    )


async def answer_to(execute: ExecuteSample, shard: Shard) -> Answer:
    outcome = await execute.execute(shard, shard.samples[0])
    assert outcome is not None
    assert isinstance(outcome.result, Answer), outcome.result
    return outcome.result


@pytest.mark.parametrize(
    ("generated", "parts", "text"),
    [
        (f"{THOUGHT}Bergen\n\nIt rains there.", {}, f"{THOUGHT}Bergen"),
        (f"{THOUGHT}Bergen. Q: And then?", {}, f"{THOUGHT}Bergen. "),
        ("Is it Oslo?\n\nNo.\n</think>\n\nBergen\n\nIt rains.", {}, "Is it Oslo?\n\nNo.\n</think>\n\nBergen"),
        ("\n\nBergen\n\nIt rains there.", {"reasoning_content": "Is it Oslo?\n\nNo."}, "\n\nBergen"),
        ("Bergen\n\nIt rains there.", {}, "Bergen"),
        ("Bergen", {}, "Bergen"),
        ("<think>\nIs it Oslo?\n\nQ: is it?", {}, "<think>\nIs it Oslo?\n\nQ: is it?"),
    ],
)
async def test_a_stop_ends_the_answer_of_a_chat_and_not_its_reasoning(
    stand: tuple[StoppingServer, ExecuteSample], generated: str, parts: dict[str, str], text: str
) -> None:
    server, execute = stand
    server.generated, server.parts = generated, parts
    answer = await answer_to(execute, asking(CHAT))
    assert answer == Answer(text, "stop", reasoning=parts.get("reasoning_content", ""))
    assert "stop" not in server.last_body


@pytest.mark.parametrize(
    "shard",
    [
        asking(CHAT, keeps_reasoning=True),
        asking(Prompt("The town is")),
        asking(CHAT, is_row=True),
    ],
    ids=["an order that keeps reasoning", "a text to complete", "a row of a data set"],
)
async def test_other_requests_send_their_stops(
    stand: tuple[StoppingServer, ExecuteSample], shard: Shard
) -> None:
    server, execute = stand
    server.generated = f"{THOUGHT}Bergen"
    assert (await answer_to(execute, shard)).text == "<think>\nIs it Oslo?"
    assert server.last_body["stop"] == ["\n\n", "Q:"]
