"""Answers that are streamed over real sockets: the same answers, with the time to the first token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from proctor.values.outcome import FailureClass
from proctor.values.sample import Prompt
from proctor.values.usage import TokenUsage
from services.worker.engines import engine
from services.worker.engines.errors import EngineFailure
from services.worker.engines.http import responses as http_stream
from services.worker.engines.http.provider_engine import HttpEngine
from services.worker.engines.http.server import Endpoint
from services.worker.engines.openai.api import OpenAIApi
from services.worker.engines.ports import Engine
from tests.fakes.eventually import eventually
from tests.fakes.providers import anthropic_server, model_server
from tests.fakes.providers.model_server import Fault, ModelServer
from tests.fakes.providers.provider_server import SECRET, ProviderServer, serving
from tests.fakes.providers.streamed_answers import OPENAI_END, anthropic_events, named_events, server_sent
from tests.fakes.worker.provider_engines import ANTHROPIC, GEMINI, OLLAMA, Native, chat

WHOLE = engine.Sampling(max_tokens=16)
STREAMED = replace(WHOLE, is_streamed=True)
SLOW = Fault("paced", seconds=0.01)


@dataclass(slots=True)
class Stand:
    """An engine and the fake that it asks."""

    name: str
    server: ProviderServer | ModelServer
    asked: Engine

    async def ask(self, sampling: engine.Sampling = STREAMED) -> engine.EngineResponse:
        return await self.asked.generate(f"{self.name}/fake", self.prompt, sampling)

    @property
    def prompt(self) -> Prompt:
        question = "What follows? KEY=seven"
        return Prompt(question) if self.name == "completions" else chat(question)

    async def failure(self) -> EngineFailure:
        with pytest.raises(EngineFailure) as caught:
            await self.ask()
        assert SECRET not in str(caught.value)
        return caught.value


@asynccontextmanager
async def stand_of(kind: Native | str, **changes: Any) -> AsyncIterator[Stand]:
    limits = {"timeout_seconds": 600.0, **changes}
    if isinstance(kind, str):
        server = ModelServer(api_key=SECRET)
        async with model_server.serving(server) as port:
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", kind, SECRET, **limits)
            asked = HttpEngine(OpenAIApi(), endpoint)
            yield Stand(kind, server, asked)
            await asked.close()
    else:
        provider = ProviderServer()
        async with serving(provider, kind.routes) as address:
            made = kind.make(Endpoint(address, kind.name, SECRET, **limits))
            yield Stand(kind.name, provider, made)
            await made.close()


KINDS = [OLLAMA, GEMINI, ANTHROPIC, "chats", "completions"]


@pytest.fixture(params=KINDS, ids=lambda kind: getattr(kind, "name", kind))
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Stand]:
    async with stand_of(request.param, timeout_seconds=5.0) as made:
        yield made


@pytest.fixture(params=KINDS, ids=lambda kind: getattr(kind, "name", kind))
async def hasty(request: pytest.FixtureRequest) -> AsyncIterator[Stand]:
    async with stand_of(request.param, timeout_seconds=1.0, idle_timeout_seconds=0.2) as made:
        yield made


async def test_streamed_answer_is_the_unstreamed_one_with_its_first_token(harness: Stand) -> None:
    whole = await harness.ask(WHOLE)
    harness.server.fault = SLOW
    response = await harness.ask()
    assert replace(response, timing=whole.timing) == whole
    timing = response.timing
    assert timing.first_token_seconds is not None
    assert 0 < timing.first_token_seconds < timing.total_seconds
    after_first = timing.total_seconds - timing.first_token_seconds
    assert timing.between_tokens_seconds == pytest.approx(after_first / 3)
    assert whole.timing.first_token_seconds is None


async def test_answer_of_a_server_that_knows_no_streaming_is_used(harness: Stand) -> None:
    harness.server.streams = False
    response = await harness.ask()
    assert response.answer.text.strip() == "The answer is seven."
    assert response.timing.first_token_seconds is None
    assert response.timing.total_seconds > 0


async def test_whole_answer_is_used_whatever_type_it_has(harness: Stand) -> None:
    harness.server.streams = False
    harness.server.fault = Fault("untyped")
    response = await harness.ask()
    assert response.answer.text.strip() == "The answer is seven."
    assert response.timing.first_token_seconds is None


async def test_byte_by_byte_is_the_same_answer(harness: Stand) -> None:
    harness.server.fault = Fault("drip")
    assert (await harness.ask()).answer.text.strip() == "The answer is seven."


@pytest.mark.parametrize("kind", ["half_body", "cut_off", "malformed", "reset"])
async def test_broken_stream_is_no_answer_and_may_be_asked_for_again(harness: Stand, kind: str) -> None:
    harness.server.fault = Fault(kind)  # type: ignore[arg-type]  # a list of literals is a list of texts
    failure = await harness.failure()
    assert (failure.failure_class, failure.is_transient) == (FailureClass.PROVIDER_ERROR, True)
    harness.server.fault = None
    assert (await harness.ask()).answer.text.strip() == "The answer is seven."


@pytest.mark.parametrize(
    ("status", "failure_class"), [(429, FailureClass.RATE_LIMIT), (503, FailureClass.PROVIDER_ERROR)]
)
async def test_error_instead_of_a_stream_is_what_it_always_is(
    harness: Stand, status: int, failure_class: FailureClass
) -> None:
    harness.server.fault = Fault("status", status, retry_after="7")
    failure = await harness.failure()
    assert (failure.failure_class, failure.retry_after_seconds) == (failure_class, 7.0)


async def test_silence_in_the_middle_is_not_waited_out(hasty: Stand) -> None:
    hasty.server.fault = Fault("silence", seconds=30)
    failure = await hasty.failure()
    assert (failure.failure_class, failure.is_transient) == (FailureClass.TIMEOUT, True)
    assert "fell silent" in str(failure)


async def test_first_token_may_take_longer_than_a_silence(hasty: Stand) -> None:
    hasty.server.latency_seconds = 0.4
    assert (await hasty.ask()).answer.text.strip() == "The answer is seven."


async def test_slow_drip_ends_with_the_time_of_the_request(hasty: Stand) -> None:
    hasty.server.fault = Fault("drip", seconds=0.05)
    failure = await hasty.failure()
    assert failure.failure_class is FailureClass.TIMEOUT
    assert "in time" in str(failure)


async def test_cancelled_stream_is_aborted_at_the_server(harness: Stand) -> None:
    harness.server.fault = Fault("silence", seconds=30)
    asking = asyncio.create_task(harness.ask())
    await eventually(lambda: harness.server.in_flight == 1, "the server has the request")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: harness.server.in_flight == 0, "the server let go of the request")


async def test_end_that_comes_without_the_end_of_the_body_is_an_end() -> None:
    async with stand_of("chats", timeout_seconds=5.0) as harness:
        chunk = {"choices": [{"index": 0, "delta": {"content": "Seven."}, "finish_reason": "stop"}]}
        body = server_sent([chunk], OPENAI_END)
        assert isinstance(harness.server, ModelServer)
        # What follows half of it never comes.
        harness.server.stream_body = body + b" " * len(body)
        harness.server.fault = Fault("silence", seconds=30)
        response = await harness.ask()
    assert response.answer.text == "Seven."
    assert response.timing.total_seconds < 4, "what is waited for behind the end is not a time of the answer"


def gemini_events(text: str, tokens: int = 0) -> dict[str, object]:
    """As Gemini may tell it: why it ended stands in each chunk."""
    counted = {"usageMetadata": {"promptTokenCount": 500, "candidatesTokenCount": tokens}} if tokens else {}
    content = {"role": "model", "parts": [{"text": text}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], **counted}


@pytest.mark.parametrize(("reason", "is_answer"), [("stop", True), (None, False)])
async def test_a_body_may_end_in_order_behind_a_finish_reason(reason: str | None, *, is_answer: bool) -> None:
    """Without the end marker, which some servers do not send."""
    async with stand_of("chats", timeout_seconds=5.0) as harness:
        chunk = {"choices": [{"index": 0, "delta": {"content": "Seven."}, "finish_reason": reason}]}
        assert isinstance(harness.server, ModelServer)
        harness.server.stream_body = server_sent([chunk])
        harness.server.fault = Fault("paced", seconds=0.01)
        if is_answer:
            assert (await harness.ask()).answer.text == "Seven."
        else:
            assert "cut off" in str(await harness.failure())


async def test_answer_of_gemini_is_whole_at_the_end_of_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_stream, "_END_OF_BODY_SECONDS", 0.01)
    async with stand_of(GEMINI, timeout_seconds=5.0) as harness:
        assert isinstance(harness.server, ProviderServer)
        chunks = [gemini_events("The answer is "), gemini_events("seven."), gemini_events("", 7)]
        harness.server.stream_body = server_sent(chunks)
        harness.server.fault = Fault("paced", seconds=0.1)
        response = await harness.ask()
    assert (response.answer.text, response.usage) == ("The answer is seven.", TokenUsage(500, 7))


async def test_answer_of_gemini_that_was_cut_off_is_none_despite_a_finish_reason() -> None:
    async with stand_of(GEMINI, timeout_seconds=5.0) as harness:
        assert isinstance(harness.server, ProviderServer)
        begun = server_sent([gemini_events("The answer is ")])
        # Half of it is the first event and nothing else.
        harness.server.stream_body = begun + b":" * (len(begun) - 1) + b"\n"
        harness.server.fault = Fault("half_body")
        failure = await harness.failure()
    assert (failure.failure_class, failure.is_transient) == (FailureClass.PROVIDER_ERROR, True)


async def test_error_event_leaks_no_key_and_is_classified() -> None:
    async with stand_of(ANTHROPIC, timeout_seconds=5.0) as harness:
        assert isinstance(harness.server, ProviderServer)
        begun = anthropic_events(anthropic_server.message("It follows"))[:-2]
        said = {"type": "overloaded_error", "message": f"Overloaded by {SECRET}"}
        harness.server.stream_body = named_events([*begun, {"type": "error", "error": said}])
        failure = await harness.failure()
    assert (failure.failure_class, failure.is_transient) == (FailureClass.PROVIDER_ERROR, True)
    assert str(failure) == "The server broke off its answer with 529 and said: Overloaded by ***"


async def test_connection_of_a_streamed_answer_serves_the_next() -> None:
    async with stand_of("chats", timeout_seconds=5.0) as harness:
        assert isinstance(harness.server, ModelServer)
        harness.server.fault = SLOW
        for _ in range(3):
            await harness.ask()
        assert len(harness.server.peers) == 1
