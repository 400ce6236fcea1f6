"""One sample becomes one outcome."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from proctor.values.code import CodeCheck
from proctor.values.outcome import Answer, Failure, FailureClass, Outcome
from proctor.values.sample import Prompt
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import TokenUsage
from services.common.clock import Clock
from services.worker.engines.engine import MAX_ANSWER_CHARACTERS, EngineResponse, Sampling
from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.errors import (
    EngineDied,
    EngineFailure,
    ProviderFailed,
    RateLimited,
    RequestRefused,
)
from services.worker.execution.execute_sample import ExecuteSample, RequestRetryPolicy
from services.worker.execution.run_states import RefusedRuns, RunControl, RunStates
from services.worker.execution.shard import Shard
from services.worker.rate_limits.limiter import RateLimiters
from services.worker.rate_limits.waits import Backoff
from tests.fakes.virtual_time import LoopClock, in_virtual_time
from tests.fakes.worker.held_message import a_shard
from tests.fakes.worker.refusing_sandboxes import refusing_check
from tests.fakes.worker.scripted_engine import ScriptedEngine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YES_OR_NO = (" yes", " no")


class FrozenClock:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


def failing(*failures: Exception) -> ScriptedEngine:
    """Fails in order, then answers."""
    waiting: Iterator[Exception] = iter(failures)

    async def answer(_: str) -> str:
        failure = next(waiting, None)
        if failure is not None:
            raise failure
        return "42"

    return ScriptedEngine(answer)


def executor_of(
    engine: ScriptedEngine, clock: Clock, states: RunStates | None = None, refused: RefusedRuns | None = None
) -> ExecuteSample:
    backoff = Backoff(0.001)
    return ExecuteSample(
        engines=EngineCache(engine),
        clock=clock,
        request_retry_policy=RequestRetryPolicy(backoff, max_tries=3),
        rate_limiters=RateLimiters(clock=clock, backoff=backoff),
        run_states=states or RunStates(),
        refused_runs=refused or RefusedRuns(clock),
        check_code=refusing_check(),
    )


async def test_a_machine_that_cannot_isolate_asks_no_model_for_code() -> None:
    engine = ScriptedEngine()
    shard = a_shard(7)
    sample = replace(shard.samples[0], code_check=CodeCheck("", "assert True"))
    outcome = await executor_of(engine, FrozenClock()).execute(shard, sample)
    assert outcome is not None
    assert isinstance(outcome.result, Failure)
    assert outcome.result.failure_class is FailureClass.SANDBOX
    assert "cannot isolate code" in outcome.result.message
    assert not engine.asked


async def test_tokens_of_answers_that_cannot_be_used_are_in_the_outcome() -> None:
    """Those of the tries before an answer, and those of an answer that is too long."""
    broken = ProviderFailed("broken off")
    broken.usage = TokenUsage(prompt_tokens=100, completion_tokens=10)
    plain = await ask(failing(), a_shard(7))
    answered = await ask(failing(broken), a_shard(7))
    failed = await ask(failing(broken, broken, broken), a_shard(7))
    assert plain is not None
    assert answered is not None
    assert answered.usage == plain.usage.plus(broken.usage)
    assert failed is not None
    assert failed.usage == TokenUsage(prompt_tokens=300, completion_tokens=30)

    async def answer_at_length(_: str) -> str:
        return "x" * (MAX_ANSWER_CHARACTERS + 1)

    long = await ask(ScriptedEngine(answer_at_length), a_shard(7))
    assert long is not None
    assert long.failure is not None
    assert long.usage.prompt_tokens == plain.usage.prompt_tokens


async def ask(engine: ScriptedEngine, shard: Shard, states: RunStates | None = None) -> Outcome | None:
    executor = executor_of(engine, FrozenClock(), states)
    return await asyncio.wait_for(executor.execute(shard, shard.samples[0]), 5)


async def failure_of(engine: ScriptedEngine, shard: Shard) -> Failure:
    outcome = await ask(engine, shard)
    assert outcome is not None
    assert isinstance(outcome.result, Failure)
    return outcome.result


async def test_a_transient_failure_is_asked_again() -> None:
    engine = failing(ProviderFailed("500"), RateLimited("429"))
    outcome = await ask(engine, a_shard(7))
    assert outcome is not None
    assert isinstance(outcome.result, Answer)
    assert (outcome.sample, outcome.result.text, engine.asked["sample 7"]) == (7, "42", 3)


async def test_tries_used_up_are_a_failure_of_the_class_of_the_last() -> None:
    failure = await failure_of(failing(*[ProviderFailed("500")] * 9), a_shard(7))
    assert failure == Failure(FailureClass.PROVIDER_ERROR, "500")


async def test_rate_limits_use_up_no_tries() -> None:
    limits = [RateLimited("429", retry_after_seconds=0.001)] * 20
    executor = executor_of(failing(ProviderFailed("500"), *limits, ProviderFailed("500")), FrozenClock())
    shard = a_shard(7)
    outcome = await asyncio.wait_for(executor.execute(shard, shard.samples[0]), 5)
    assert outcome is not None
    assert isinstance(outcome.result, Answer)
    limiter = executor.rate_limiters.own
    assert (limiter.sent, limiter.rate_limited, limiter.request_retries) == (23, 20, {"run-1": 2})


@pytest.mark.parametrize(("epoch", "asked"), [(1, 1), (2, 3)])
async def test_a_run_that_spent_its_budget_tries_no_more(epoch: int, asked: int) -> None:
    states = RunStates()
    shard = a_shard(7, epoch=epoch)
    states.put(shard.run_id, RunControl(epoch=1, is_final=False, is_request_retry_budget_spent=True))
    engine = failing(*[ProviderFailed("500")] * 9)
    outcome = await ask(engine, shard, states)
    assert outcome is not None
    assert outcome.result == Failure(FailureClass.PROVIDER_ERROR, "500")
    assert engine.asked["sample 7"] == asked


async def test_a_rate_limit_is_waited_out_also_where_the_budget_is_spent() -> None:
    states = RunStates()
    states.put(a_shard(7).run_id, RunControl(epoch=1, is_final=False, is_request_retry_budget_spent=True))
    outcome = await ask(failing(RateLimited("429", retry_after_seconds=0.001)), a_shard(7), states)
    assert outcome is not None
    assert isinstance(outcome.result, Answer)


async def test_an_engine_that_stumbles_is_asked_again() -> None:
    outcome = await ask(failing(AttributeError("no attribute")), a_shard(7))
    assert outcome is not None
    assert isinstance(outcome.result, Answer)


async def test_an_engine_that_always_stumbles_is_a_failure_of_the_sample() -> None:
    failure = await failure_of(failing(*[TypeError("secret")] * 9), a_shard(7))
    assert failure.failure_class is FailureClass.PROVIDER_ERROR
    assert failure.message == "The engine's answer cannot be used (TypeError)."


async def test_a_refusal_is_asked_once() -> None:
    engine = failing(RequestRefused("check the key"))
    assert await failure_of(engine, a_shard(7)) == Failure(FailureClass.REFUSED, "check the key")
    assert engine.asked["sample 7"] == 1


async def test_a_rate_limit_beyond_the_deadline_is_a_failure_at_once() -> None:
    shard = a_shard(7, deadline=NOW + timedelta(seconds=60))
    failure = await failure_of(failing(RateLimited("429", retry_after_seconds=61)), shard)
    assert failure.failure_class is FailureClass.RATE_LIMIT


@in_virtual_time
@pytest.mark.parametrize("failure", [RateLimited, ProviderFailed])
async def test_a_retry_after_of_a_day_is_retried_until_the_deadline(
    failure: type[EngineFailure],
) -> None:
    clock = LoopClock()
    hours = a_shard(7, deadline=clock.now() + timedelta(hours=3))
    engine = failing(*[failure("no", retry_after_seconds=86400)] * 2)
    executor = executor_of(engine, clock)
    outcome = await executor.execute(hours, hours.samples[0])
    assert outcome is not None
    assert isinstance(outcome.result, Answer)
    assert clock.now() < hours.deadline - timedelta(hours=2, minutes=50)


async def test_after_the_deadline_nothing_is_sent_or_recorded() -> None:
    engine = failing()
    assert await ask(engine, a_shard(7, deadline=NOW)) is None
    assert not engine.asked


async def test_a_dead_engine_says_nothing_about_the_sample() -> None:
    with pytest.raises(EngineDied):
        await ask(failing(EngineDied("gone")), a_shard(7))


async def test_choices_are_scored() -> None:
    outcome = await ask(ScriptedEngine(), a_shard(7, method=ScoringMethod.LOGLIKELIHOOD, choices=YES_OR_NO))
    assert outcome is not None
    assert isinstance(outcome.result, Answer)
    assert len(outcome.result.choices) == 2


def saying(text: str) -> ScriptedEngine:
    async def answer(_: str) -> str:
        return text

    return ScriptedEngine(answer)


async def test_choices_are_named_to_a_model_that_answers_freely() -> None:
    engine = saying("I cannot tell.")
    outcome = await ask(engine, a_shard(7, method=ScoringMethod.GENERATE, choices=YES_OR_NO))
    assert outcome is not None
    assert isinstance(outcome.result, Answer)
    assert outcome.result.text == "I cannot tell."
    [asked] = engine.asked
    assert asked.startswith("Reply with the text of exactly one of these options")
    assert engine.last_sampling == a_shard(7).sampling


async def test_constrained_decoding_answers_only_choices() -> None:
    engine = saying(" yes")
    outcome = await ask(engine, a_shard(7, method=ScoringMethod.CONSTRAINED, choices=YES_OR_NO))
    assert outcome is not None
    assert isinstance(outcome.result, Answer)
    assert engine.last_sampling is not None
    assert engine.last_sampling.allowed_texts == YES_OR_NO


async def test_what_is_none_of_the_choices_is_no_answer_where_decoding_is_constrained() -> None:
    engine = saying("perhaps")
    failure = await failure_of(engine, a_shard(7, method=ScoringMethod.CONSTRAINED, choices=YES_OR_NO))
    assert failure.failure_class is FailureClass.PROVIDER_ERROR
    assert engine.asked.total() == 3


@pytest.mark.parametrize("method", [ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED])
async def test_equal_choices_are_refused_unless_scored_by_log_likelihood(method: ScoringMethod) -> None:
    same = (" yes", " yes ")
    failure = await failure_of(ScriptedEngine(), a_shard(7, method=method, choices=same))
    assert failure.failure_class is FailureClass.REFUSED
    weighed = await ask(ScriptedEngine(), a_shard(7, method=ScoringMethod.LOGLIKELIHOOD, choices=same))
    assert weighed is not None
    assert isinstance(weighed.result, Answer)
    assert weighed.result.choices


async def test_an_answer_that_no_message_can_carry_is_a_failure() -> None:
    async def endless(_: str) -> str:
        return "x" * (MAX_ANSWER_CHARACTERS + 1)

    failure = await failure_of(ScriptedEngine(endless), a_shard(7))
    assert failure.failure_class is FailureClass.PROVIDER_ERROR
    assert "max_tokens" in failure.message


@pytest.mark.parametrize("failure", [RateLimited("429"), ProviderFailed("500")])
async def test_a_failed_sample_is_not_retried_while_its_run_has_no_slot(
    failure: EngineFailure,
) -> None:
    """Its run asks it again when it has a place: nothing is lost to a limit that stands still."""
    states = RunStates()

    async def refuse_and_pause(_: str) -> str:
        states.put(a_shard(7).run_id, RunControl(epoch=1, is_final=False, has_slot=False))
        raise failure

    engine = ScriptedEngine(refuse_and_pause)
    assert await ask(engine, a_shard(7), states) is None
    assert engine.asked["sample 7"] == 1


async def test_a_permanent_failure_is_recorded_with_or_without_a_slot() -> None:
    states = RunStates()
    states.put(a_shard(7).run_id, RunControl(epoch=1, is_final=False, has_slot=False))
    outcome = await ask(failing(RequestRefused("too long")), a_shard(7), states)
    assert outcome is not None
    assert outcome.result == Failure(FailureClass.REFUSED, "too long")


@pytest.mark.parametrize(
    ("control", "is_asked"),
    [
        (RunControl(epoch=1, is_final=False, deadline=NOW + timedelta(hours=1)), True),
        (RunControl(epoch=1, is_final=False, has_slot=False), True),
        (RunControl(epoch=1, is_final=False, deadline=NOW), False),
        # Heard of an earlier epoch: the shard's own word is the later one.
        (RunControl(epoch=0, is_final=False, deadline=NOW + timedelta(hours=1)), False),
    ],
)
async def test_the_runs_present_deadline_wins_over_that_of_the_shard(
    control: RunControl, *, is_asked: bool
) -> None:
    states = RunStates()
    shard = a_shard(7, deadline=NOW)
    states.put(shard.run_id, control)
    outcome = await ask(failing(), shard, states)
    assert (outcome is not None) is is_asked


async def test_a_row_with_invalid_parameters_is_refused_and_nothing_is_sent() -> None:
    shard = a_shard(1)
    sample = replace(shard.samples[0], refusal="The line's top_p is not a number.")
    failure = await failure_of(failing(RateLimited("429")), replace(shard, samples=(sample,)))
    assert failure == Failure(FailureClass.REFUSED, "The line's top_p is not a number.")


async def test_text_and_whole_answer_together_are_bounded() -> None:
    half = "x" * (MAX_ANSWER_CHARACTERS // 2 + 1)

    class LongEngine(ScriptedEngine):
        async def generate(self, model: str, prompt: Prompt, sampling: Sampling) -> EngineResponse:
            answer = Answer(half, body_json=half)
            return replace(await super().generate(model, prompt, sampling), answer=answer)

    assert "lower max_tokens" in (await failure_of(LongEngine(), a_shard(1))).message
