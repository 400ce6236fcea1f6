"""Behaviour of every engine with an API of its own, over real sockets: failures, keys, cancelling."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from proctor.values.outcome import FailureClass
from proctor.values.sample import Prompt
from services.worker.engines.errors import EngineFailure, UnsupportedRequest
from services.worker.engines.http.server import Endpoint
from services.worker.engines.ports import Engine
from tests.fakes.eventually import eventually
from tests.fakes.providers.model_server import Fault
from tests.fakes.providers.provider_server import SECRET
from tests.fakes.worker.provider_engines import (
    ANTHROPIC,
    GEMINI,
    OLLAMA,
    SAMPLING,
    Native,
    NativeStand,
    chat,
    native_stand,
)


@pytest.fixture(params=[OLLAMA, GEMINI, ANTHROPIC], ids=lambda native: str(native.name))
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[NativeStand]:
    native: Native = request.param
    async with native_stand(native) as made:
        yield made


async def failure_of(asked: Engine, model: str) -> EngineFailure:
    with pytest.raises(EngineFailure) as caught:
        await asked.generate(model, chat("KEY=seven"), SAMPLING)
    return caught.value


async def test_messages_are_answered(harness: NativeStand) -> None:
    response = await harness.ask()
    assert (response.answer.text, response.answer.finish_reason) == ("The answer is seven.", "stop")
    assert response.usage.prompt_tokens > 0
    assert response.usage.completion_tokens == 4
    assert response.timing.total_seconds > 0


async def test_empty_answer_is_an_answer(harness: NativeStand) -> None:
    harness.server.answer = harness.native.said("")
    response = await harness.ask()
    assert (response.answer.text, response.answer.finish_reason) == ("", "stop")


async def test_what_was_thought_is_no_part_of_the_answer(harness: NativeStand) -> None:
    harness.server.answer = harness.native.thought("Seven.", "Six comes before it.")
    assert (await harness.ask()).answer.text == "Seven."


@pytest.mark.parametrize(
    ("status", "message", "failure_class", "is_transient"),
    [
        (400, "temperature: must be at most 1", FailureClass.REFUSED, False),
        (402, "no credit is left", FailureClass.REFUSED, False),
        (408, "too slow", FailureClass.TIMEOUT, True),
        (413, "request too large", FailureClass.PROMPT_TOO_LONG, False),
        (429, "too many tokens in this minute", FailureClass.RATE_LIMIT, True),
        (500, "internal error", FailureClass.PROVIDER_ERROR, True),
        (503, "server busy, please try again", FailureClass.PROVIDER_ERROR, True),
        (504, "deadline exceeded", FailureClass.TIMEOUT, True),
        (529, "Overloaded", FailureClass.PROVIDER_ERROR, True),
    ],
)
async def test_status_decides_the_class(
    harness: NativeStand, *, status: int, message: str, failure_class: FailureClass, is_transient: bool
) -> None:
    harness.server.error = harness.native.error(status, message)
    failure = await failure_of(harness.asked, harness.model)
    assert (failure.failure_class, failure.is_transient) == (failure_class, is_transient)
    assert message in str(failure)
    assert len(harness.server.asked) == 1, "an engine asks once; retrying is done above"


async def test_rate_limit_has_its_retry_after(harness: NativeStand) -> None:
    harness.server.error = replace(harness.native.error(429, "slow down"), retry_after="7")
    assert (await failure_of(harness.asked, harness.model)).retry_after_seconds == 7.0


@pytest.mark.parametrize("kind", ["half_body", "malformed", "reset"])
async def test_broken_answer_may_be_asked_for_again(harness: NativeStand, kind: str) -> None:
    harness.server.fault = Fault(kind)  # type: ignore[arg-type]  # a list of literals is a list of texts
    failure = await failure_of(harness.asked, harness.model)
    assert (failure.failure_class, failure.is_transient) == (FailureClass.PROVIDER_ERROR, True)
    harness.server.fault = None
    assert (await harness.ask()).answer.text == "The answer is seven."


@pytest.mark.parametrize(
    "document", [{}, {"done": True}, {"candidates": []}, {"content": None}, {"message": 3}]
)
async def test_answer_in_no_known_shape_may_be_asked_for_again(
    harness: NativeStand, document: dict[str, object]
) -> None:
    harness.server.answer = {"model": "fake", **document}
    assert (await failure_of(harness.asked, harness.model)).failure_class is FailureClass.PROVIDER_ERROR


@pytest.mark.parametrize("fault", [Fault("hang", seconds=30), Fault("drip", seconds=0.05)])
async def test_server_that_does_not_end_in_time_is_a_timeout(harness: NativeStand, fault: Fault) -> None:
    harness.server.fault = fault
    async with harness.other_engine(timeout_seconds=0.3) as hasty:
        assert (await failure_of(hasty, harness.model)).failure_class is FailureClass.TIMEOUT


async def test_server_that_is_not_there_is_named(harness: NativeStand) -> None:
    gone = harness.native.make(
        Endpoint("http://127.0.0.1:9", harness.native.name, SECRET, timeout_seconds=5.0)
    )
    failure = await failure_of(gone, harness.model)
    await gone.close()
    assert failure.is_transient
    assert "127.0.0.1:9" in str(failure)


async def test_cancelled_request_is_aborted_at_the_server(harness: NativeStand) -> None:
    harness.server.latency_seconds = 30
    asking = asyncio.create_task(harness.ask())
    await eventually(lambda: harness.server.in_flight == 1, "the server has the request")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: harness.server.aborted == 1, "the server let go of the request")


async def test_unknown_model_is_refused(harness: NativeStand) -> None:
    failure = await failure_of(harness.asked, f"{harness.native.name}/no/such model?x=1")
    assert failure.failure_class is FailureClass.REFUSED
    assert "check the model's name" in str(failure)
    assert "no/such model?x=1" in str(failure)


async def test_given_texts_are_not_scored(harness: NativeStand) -> None:
    assert not any(
        model.capabilities and model.capabilities.loglikelihood for model in await harness.asked.list_models()
    )
    with pytest.raises(UnsupportedRequest, match="scores no given text"):
        await harness.asked.score_choices(harness.model, Prompt("So:"), [" yes"], truncate_left=False)


async def test_redirect_is_not_followed_with_the_key(harness: NativeStand) -> None:
    harness.server.error = harness.native.error(307, "over there")
    failure = await failure_of(harness.asked, harness.model)
    assert failure.failure_class is FailureClass.REFUSED
    assert "base URL" in str(failure)


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_key_is_reported_by_its_variable(harness: NativeStand, status: int) -> None:
    harness.server.error = harness.native.error(status, f"the key {SECRET} may not do that")
    failure = await failure_of(harness.asked, harness.model)
    assert failure.failure_class is FailureClass.REFUSED
    assert f"the API key in {harness.endpoint.api_key_env}" in str(failure)
    assert SECRET not in str(failure)


async def test_planted_key_is_in_no_log_text_or_fact(
    harness: NativeStand, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    reported = [repr(harness.endpoint), repr(harness.asked), str(await harness.asked.describe())]
    harness.server.error = harness.native.error(400, f"I was given {SECRET}")
    reported.append(repr(await failure_of(harness.asked, harness.model)))
    harness.server.error = None
    for kind in ("half_body", "malformed", "reset"):
        harness.server.fault = Fault(kind)
        reported.append(repr(await failure_of(harness.asked, harness.model)))
    assert any(SECRET in str(asked.headers) for asked in harness.server.asked), "the key was sent"
    assert not any(SECRET in asked.path for asked in harness.server.asked), "but never in an address"
    output = capfd.readouterr()
    assert SECRET not in "\n".join([*reported, caplog.text, output.out, output.err])


@pytest.mark.parametrize(("native", "provider"), [(GEMINI, "Gemini"), (ANTHROPIC, "Anthropic")])
async def test_missing_key_is_reported_before_any_request(native: Native, provider: str) -> None:
    async with native_stand(native) as harness, harness.other_engine(api_key=None) as keyless:
        failure = await failure_of(keyless, harness.model)
        assert not harness.server.asked
    assert failure.failure_class is FailureClass.REFUSED
    assert str(failure).startswith(f"API key not configured for {provider}: set {provider.upper()}_API_KEY")


@pytest.mark.parametrize(("native", "provider"), [(GEMINI, "Gemini"), (ANTHROPIC, "Anthropic")])
async def test_text_to_continue_is_refused_where_there_are_only_chats(native: Native, provider: str) -> None:
    async with native_stand(native) as harness:
        with pytest.raises(UnsupportedRequest, match=f"^{provider} .*prompt_form=chat"):
            await harness.asked.generate(harness.model, Prompt("So:"), SAMPLING)
        assert not harness.server.asked


async def test_many_requests_at_once_are_all_answered(harness: NativeStand) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(harness.ask(f"Which number? KEY={number}")) for number in range(100)]
    assert [task.result().answer.text for task in tasks] == [
        f"The answer is {number}." for number in range(100)
    ]
