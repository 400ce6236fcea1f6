"""One sample becomes one outcome: asked, asked again when the machinery failed, until the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.worker.engines.engine import (
    LONGEST_ANSWER_CHARACTERS,
    Engine,
    EngineDied,
    EngineFailure,
    FailureClass,
    Generated,
    ModelCannotLoad,
    ModelRefused,
    Prompt,
    ProviderFailed,
    RateLimited,
    ScoredChoices,
)
from services.worker.engines.engine_cache import Engines
from services.worker.execution.choice_prompt import constrained_sampling, instructed_prompt, option_texts
from services.worker.execution.retry_policy import RetryPolicy
from services.worker.execution.run_states import RefusedRuns, RunStates
from services.worker.execution.shard import Failure, Method, Outcome, Shard, ShardSample
from services.worker.rate_limits.limiter import Pace, Paces

log = get_logger()


@dataclass(frozen=True, slots=True)
class AskingRules:
    """What decides whether and when a sample is asked, and asked again."""

    policy: RetryPolicy
    paces: Paces
    states: RunStates
    refused: RefusedRuns


class SampleAsker:
    def __init__(self, engines: Engines, clock: Clock, rules: AskingRules) -> None:
        self._engines = engines
        self._clock = clock
        self._rules = rules

    async def ask(self, shard: Shard, sample: ShardSample) -> Outcome | None:
        """The outcome; None where nothing can be said: the deadline came before the first try, or the run has
        lost its place and the machinery failed. Its run asks it again, if it goes on.

        Raises EngineDied and ModelCannotLoad, and ModelRefused where the whole run is: they say nothing about
        the sample.
        """
        if sample.refusal:
            return Outcome(shard, sample.number, Failure(FailureClass.REFUSED, sample.refusal))
        return await self._ask_until_answered(shard, sample)

    async def _ask_until_answered(self, shard: Shard, sample: ShardSample) -> Outcome | None:
        pace = self._rules.paces.of(shard.base_url)
        failure: EngineFailure | None = None
        tries = 0
        while True:
            await pace.turn()
            if failure and self._is_for_later(shard, failure):
                return None
            if self._clock.now() >= self._rules.states.deadline_of(shard):
                return self._failed(shard, sample, failure) if failure else None
            if reason := self._rules.refused.reason_for(shard):
                raise ModelRefused(reason)
            try:
                return Outcome(shard, sample.number, await self._ask_at_pace(pace, shard, sample))
            except (EngineDied, ModelCannotLoad):
                raise
            except EngineFailure as error:
                failure = error
            if self._is_for_later(shard, failure):
                return None
            tries += not isinstance(failure, RateLimited)
            delay = self._delay_before(pace, shard, failure, tries)
            if delay is None:
                return self._failed(shard, sample, failure)
            if delay:
                pace.retried(shard.run_id)
                await asyncio.sleep(delay)

    async def _ask_at_pace(
        self, pace: Pace, shard: Shard, sample: ShardSample
    ) -> Generated | ScoredChoices | Failure:
        pace.sends()
        try:
            result = await self._ask_safely(shard, sample)
        except RateLimited as failure:
            pace.refused(failure.retry_after_seconds)
            raise
        except EngineFailure as failure:
            pace.took()
            if failure.retry_after_seconds is not None:
                pace.resume_in(failure.retry_after_seconds)
            raise
        pace.took(result.usage.prompt_tokens + result.usage.completion_tokens)
        self._rules.refused.answered(shard)
        return _bounded(result)

    def _failed(self, shard: Shard, sample: ShardSample, failure: EngineFailure) -> Outcome:
        if isinstance(failure, ModelRefused):
            is_certain = failure.is_certain
            if self._rules.refused.refuse(shard, str(failure), is_certain=is_certain):
                raise failure
        return Outcome(shard, sample.number, Failure(failure.failure_class, str(failure)))

    def _is_for_later(self, shard: Shard, failure: EngineFailure) -> bool:
        return failure.is_transient and not self._rules.states.has_place(shard)

    def _delay_before(self, pace: Pace, shard: Shard, failure: EngineFailure, tries: int) -> float | None:
        """None where another try is not worth it or comes too late. What was limited waits for its pace."""
        if isinstance(failure, RateLimited):
            return 0.0 if self._starts_in_time(shard, pace.held_seconds()) else None
        delay = self._rules.policy.delay_seconds(failure, tries)
        if delay is None or not self._starts_in_time(shard, delay):
            return None
        return delay if self._rules.states.may_try_again(shard) else None

    def _starts_in_time(self, shard: Shard, delay: float) -> bool:
        return self._clock.now() + timedelta(seconds=delay) < self._rules.states.deadline_of(shard)

    async def _ask_safely(self, shard: Shard, sample: ShardSample) -> Generated | ScoredChoices:
        """What an engine did not foresee is this sample's failure, and no other's."""
        try:
            return await self._ask_once(shard, sample)
        except EngineFailure:
            raise
        except Exception as error:  # an edge: the engine
            log.error("engine stumbled", run_id=shard.run_id, sample=sample.number, exc_info=error)
            reason = f"The engine's answer cannot be used ({type(error).__name__})."
            raise ProviderFailed(reason) from error

    async def _ask_once(self, shard: Shard, sample: ShardSample) -> Generated | ScoredChoices:
        if not shard.base_url:
            return await _ask_engine(self._engines.own, shard, sample)
        async with self._engines.at(shard.base_url) as engine:
            return await _ask_engine(engine, shard, sample)


async def _ask_engine(engine: Engine, shard: Shard, sample: ShardSample) -> Generated | ScoredChoices:
    if shard.method is Method.SCORE_CHOICES:
        return await engine.score_choices(
            shard.model, sample.prompt, sample.choices, truncate_left=shard.truncate_left
        )
    if not sample.choices:
        return await engine.generate(shard.model, sample.prompt, sample.sampling or shard.sampling)
    prompt = instructed_prompt(sample.prompt, sample.choices)
    if shard.method is Method.CONSTRAINED:
        return await _ask_constrained(engine, shard, prompt, sample.choices)
    return await engine.generate(shard.model, prompt, shard.sampling)


async def _ask_constrained(engine: Engine, shard: Shard, prompt: Prompt, choices: Sequence[str]) -> Generated:
    """A server may leave out of account what it was told: then what it said is no answer."""
    sampling = constrained_sampling(shard.sampling, prompt, choices)
    generated = await engine.generate(shard.model, prompt, sampling)
    if generated.text.strip() not in option_texts(choices):
        raise ProviderFailed("The answer is none of the choices, though decoding was constrained to them.")
    return generated


def _bounded(result: Generated | ScoredChoices) -> Generated | ScoredChoices | Failure:
    """An answer that no message could carry is no answer."""
    if isinstance(result, Generated) and len(result.text) + len(result.body_json) > LONGEST_ANSWER_CHARACTERS:
        message = f"The answer has more than {LONGEST_ANSWER_CHARACTERS:,} characters; lower max_tokens."
        return Failure(FailureClass.PROVIDER_ERROR, message)
    return result
