"""Turns one sample into one outcome: sent, and sent again after failures, until the run's deadline."""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta

from proctor.values.code import CodeCheck
from proctor.values.outcome import Failure, FailureClass, Outcome
from proctor.values.reasoning.answers import ended_at_stop, with_reasoning_apart
from proctor.values.sample import Prompt
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.common.clock import Clock
from services.common.sandboxes.errors import SandboxError
from services.common.structured_logs import get_logger
from services.worker.engines.engine import MAX_ANSWER_CHARACTERS, EngineResponse, Sampling
from services.worker.engines.engine_cache import EngineCache
from services.worker.engines.errors import (
    EngineDied,
    EngineFailure,
    ModelCannotLoad,
    ModelRefused,
    ProviderFailed,
    RateLimited,
)
from services.worker.engines.ports import Engine
from services.worker.execution.choice_prompt import constrained_sampling, instructed_prompt, option_texts
from services.worker.execution.request_span import is_traced_call, note_usage, request_span
from services.worker.execution.request_wait import RequestWait
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.execution.shard import Shard, ShardSample
from services.worker.metrics import RATE_LIMITED, REQUEST_RETRIES
from services.worker.rate_limits.limiter import ProviderRateLimiter, RateLimiters
from services.worker.rate_limits.waits import Backoff, capped_retry_after
from services.worker.verification.check_code import CheckCode

log = get_logger()


@dataclass(frozen=True, slots=True)
class RequestRetryPolicy:
    """Decides by the class of a failure. A 429 counts as no try: the rate limiter waits it out."""

    backoff: Backoff
    max_tries: int

    def delay_seconds(self, failure: EngineFailure, tries: int) -> float | None:
        """Seconds to wait before the next try after `tries` of them; None after the last one."""
        if not failure.is_transient or tries >= self.max_tries:
            return None
        retry_after = failure.retry_after_seconds
        if retry_after is None:
            return self.backoff.seconds(tries)
        # Not before the provider's own time, and not all requests at the same instant.
        return capped_retry_after(retry_after) + self.backoff.seconds(1)


@dataclass(frozen=True, slots=True)
class ExecuteSample:
    engines: EngineCache
    clock: Clock
    request_retry_policy: RequestRetryPolicy
    rate_limiters: RateLimiters
    run_states: RunStates
    refused_runs: RefusedRuns
    check_code: CheckCode

    def execute(
        self, shard: Shard, sample: ShardSample, wait: RequestWait | None = None
    ) -> Coroutine[None, None, Outcome | None]:
        """The outcome; None where the sample is left to its run: the deadline came before the first try, or
        the run lost its slot and the request failed.

        Raises EngineDied, ModelCannotLoad, and ModelRefused where the whole run is refused.
        """
        if sample.refusal or sample.code_check:
            return self._execute_checked(shard, sample, wait or RequestWait())
        # What only passes through here is no coroutine: each costs a sample as much as reading its usage.
        return self._execute_until_answered(shard, sample, wait or RequestWait())

    async def _execute_checked(self, shard: Shard, sample: ShardSample, wait: RequestWait) -> Outcome | None:
        if sample.refusal:
            return shard.outcome(sample.number, Failure(FailureClass.REFUSED, sample.refusal))
        if problem := await self.check_code.problem():
            return shard.outcome(sample.number, Failure(FailureClass.SANDBOX, problem))
        return await self._execute_until_answered(shard, sample, wait)

    async def _execute_until_answered(
        self, shard: Shard, sample: ShardSample, wait: RequestWait
    ) -> Outcome | None:
        limiter = self.rate_limiters.for_server(shard.base_url)
        failure: EngineFailure | None = None
        tries, spent = 0, NO_TOKENS
        while True:
            await wait.until_turn()
            await limiter.acquire()
            # After the wait for quota, which may be long: the run may have lost its slot meanwhile.
            if failure and self._is_left_to_run(shard, failure):
                return None
            if self.clock.now() >= self.run_states.deadline(shard):
                # Never asked is not failed: a retry asks it, and the failed share stays honest.
                return self._failed(shard, sample, failure, spent) if failure else None
            if reason := self.refused_runs.reason(shard):
                raise ModelRefused(reason)
            try:
                wait.is_sent = True
                response = await self._send(limiter, shard, sample)
                check = sample.code_check
                judged = await self._judged(shard, check, response) if check else _judged_by_length(response)
                # An answer that is not kept was paid like one that is.
                spent = spent.plus(response.usage) if isinstance(judged, Failure) else spent
                return shard.outcome(sample.number, judged, spent)
            # The failure is the worker's and not the sample's: the shard is handed on without an outcome.
            except (EngineDied, ModelCannotLoad):
                raise
            except EngineFailure as error:
                failure, spent = error, spent.plus(error.usage)
                wait.failure = error
            finally:
                wait.is_sent = False
            if self._is_left_to_run(shard, failure):
                return None
            # A 429 says nothing about the request; only the deadline bounds how often it is sent.
            tries += not isinstance(failure, RateLimited)
            delay = self._delay(limiter, shard, failure, tries)
            if delay is None:
                return self._failed(shard, sample, failure, spent)
            if delay:
                limiter.on_request_retry(shard.run_id)
                REQUEST_RETRIES.inc()
                await asyncio.sleep(delay)

    async def _send(self, limiter: ProviderRateLimiter, shard: Shard, sample: ShardSample) -> EngineResponse:
        """An exception that the engine did not foresee fails this sample and no other."""
        limiter.on_sent()
        try:
            response = await self._ask(shard, sample)
        except RateLimited as failure:
            limiter.on_rate_limited(failure.retry_after_seconds)
            RATE_LIMITED.inc()
            raise
        except EngineFailure as failure:
            # A refusal or an error was let through by the rate limit all the same.
            limiter.on_accepted()
            if failure.retry_after_seconds is not None:
                limiter.on_retry_after(failure.retry_after_seconds)
            raise
        except Exception as error:  # an edge: the engine
            limiter.on_accepted()
            log.error("engine raised", run_id=shard.run_id, sample=sample.number, exc_info=error)
            reason = f"The engine's answer cannot be used ({type(error).__name__})."
            raise ProviderFailed(reason) from error
        limiter.on_accepted(response.usage.total_tokens)
        # An answer proves that key and model are good, so a later refusal is about its request.
        self.refused_runs.on_answer(shard)
        return response

    async def _judged(
        self, shard: Shard, check: CodeCheck, response: EngineResponse
    ) -> EngineResponse | Failure:
        """The response with the result of its code; a failure if it is too long."""
        if (judged := _judged_by_length(response)) is not response:
            return judged
        answer = response.answer
        try:
            # No draft in the reasoning is executed.
            shown = answer if shard.keeps_reasoning else with_reasoning_apart(answer)
            result = await self.check_code.check(check, shown.text)
        except SandboxError as error:
            return Failure(FailureClass.SANDBOX, str(error))
        return replace(response, answer=replace(answer, code_result=result))

    def _failed(
        self, shard: Shard, sample: ShardSample, failure: EngineFailure, spent: TokenUsage
    ) -> Outcome:
        if isinstance(failure, ModelRefused):
            is_certain = failure.is_certain
            if self.refused_runs.on_refusal(shard, str(failure), is_certain=is_certain):
                raise failure
        return shard.outcome(sample.number, Failure(failure.failure_class, str(failure)), spent)

    def _is_left_to_run(self, shard: Shard, failure: EngineFailure) -> bool:
        return failure.is_transient and not self.run_states.has_slot(shard)

    def _delay(
        self, limiter: ProviderRateLimiter, shard: Shard, failure: EngineFailure, tries: int
    ) -> float | None:
        """Seconds before the next try; None where there is none, or it would start too late.

        After a 429 it is 0: the rate limiter makes the next try wait.
        """
        if isinstance(failure, RateLimited):
            return 0.0 if self._starts_in_time(shard, limiter.throttled_seconds()) else None
        delay = self.request_retry_policy.delay_seconds(failure, tries)
        if delay is None or not self._starts_in_time(shard, delay):
            return None
        return delay if self.run_states.may_retry_request(shard) else None

    def _starts_in_time(self, shard: Shard, delay: float) -> bool:
        return self.clock.now() + timedelta(seconds=delay) < self.run_states.deadline(shard)

    def _ask(self, shard: Shard, sample: ShardSample) -> Awaitable[EngineResponse]:
        if shard.base_url or is_traced_call(shard, sample):
            return self._ask_traced(shard, sample)
        return _ask_engine(self.engines.own, shard, sample)

    async def _ask_traced(self, shard: Shard, sample: ShardSample) -> EngineResponse:
        async with AsyncExitStack() as around:
            call = None
            if is_traced_call(shard, sample):
                call = around.enter_context(request_span(shard, sample))
            asked = self.engines.own
            if shard.base_url:
                asked = await around.enter_async_context(self.engines.for_server(shard.base_url))
            response = await _ask_engine(asked, shard, sample)
            if call is not None:
                note_usage(call, response.usage)
            return response


def _judged_by_length(response: EngineResponse) -> EngineResponse | Failure:
    answer = response.answer
    if len(answer.text) + len(answer.reasoning) + len(answer.body_json) <= MAX_ANSWER_CHARACTERS:
        return response
    message = f"The answer has more than {MAX_ANSWER_CHARACTERS:,} characters; lower max_tokens."
    return Failure(FailureClass.PROVIDER_ERROR, message)


def _ask_engine(asked: Engine, shard: Shard, sample: ShardSample) -> Awaitable[EngineResponse]:
    if shard.method is ScoringMethod.LOGLIKELIHOOD:
        return asked.score_choices(
            shard.model,
            sample.prompt,
            sample.choices,
            ending=sample.choice_ending,
            truncate_left=shard.truncate_left,
        )
    if not sample.choices:
        return _generate(asked, shard, sample.prompt, sample.sampling or shard.sampling)
    prompt = instructed_prompt(sample.prompt, sample.choices)
    if shard.method is ScoringMethod.CONSTRAINED:
        return _ask_constrained(asked, shard, prompt, sample.choices)
    return _generate(asked, shard, prompt, shard.sampling)


def _generate(asked: Engine, shard: Shard, prompt: Prompt, sampling: Sampling) -> Awaitable[EngineResponse]:
    if not sampling.stop or sampling.is_row or shard.keeps_reasoning or not prompt.messages:
        return asked.generate(shard.model, prompt, sampling)
    return _generate_and_end(asked, shard.model, prompt, sampling)


async def _generate_and_end(asked: Engine, model: str, prompt: Prompt, sampling: Sampling) -> EngineResponse:
    """The stops of a suite end the answer of a chat, and not the reasoning before it."""
    response = await asked.generate(model, prompt, sampling.without_stops())
    answer = ended_at_stop(response.answer, sampling.stop)
    return response if answer is response.answer else replace(response, answer=answer)


async def _ask_constrained(
    asked: Engine, shard: Shard, prompt: Prompt, choices: Sequence[str]
) -> EngineResponse:
    """A server may ignore the constraint: then its text is a failure."""
    sampling = constrained_sampling(shard.sampling, prompt, choices)
    response = await asked.generate(shard.model, prompt, sampling)
    # Servers that do not know the parameter ignore it without a word.
    if response.answer.text.strip() not in option_texts(choices):
        failure = ProviderFailed(
            "The answer is none of the choices, though decoding was constrained to them."
        )
        failure.usage = response.usage
        raise failure
    return response
