"""One sample becomes one outcome: asked, asked again when the machinery failed, until the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.worker.choice_prompt import constrained_sampling, instructed_prompt, option_texts
from services.worker.engine import (
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
    ScoredChoices,
)
from services.worker.refused_runs import RefusedRuns
from services.worker.retry_policy import RetryPolicy
from services.worker.shard import Failure, Method, Outcome, Shard, ShardSample

log = get_logger()


class SampleAsker:
    def __init__(
        self,
        engine: Engine,
        policy: RetryPolicy,
        clock: Clock,
        jitter: Callable[[], float],
        refused: RefusedRuns,
    ) -> None:
        self._engine = engine
        self._refused = refused
        self._policy = policy
        self._clock = clock
        self._jitter = jitter

    async def ask(self, shard: Shard, sample: ShardSample) -> Outcome | None:
        """The outcome; None where the deadline came before the first try, so that nothing can be said.

        Raises EngineDied and ModelCannotLoad, and ModelRefused where the whole run is: they say nothing about
        the sample.
        """
        if self._clock.now() >= shard.deadline:
            return None
        tries = 0
        while True:
            if reason := self._refused.reason_for(shard):
                raise ModelRefused(reason)
            try:
                result = await self._ask_safely(shard, sample)
            except (EngineDied, ModelCannotLoad):
                raise
            except EngineFailure as failure:
                tries += 1
                delay = self._delay_before(shard, failure, tries)
                if delay is None:
                    return self._failed(shard, sample, failure)
            else:
                self._refused.answered(shard)
                return Outcome(shard, sample.number, _bounded(result))
            await asyncio.sleep(delay)

    def _failed(self, shard: Shard, sample: ShardSample, failure: EngineFailure) -> Outcome:
        if isinstance(failure, ModelRefused) and self._refused.refuse(shard, str(failure)):
            raise failure
        return Outcome(shard, sample.number, Failure(failure.failure_class, str(failure)))

    def _delay_before(self, shard: Shard, failure: EngineFailure, tries: int) -> float | None:
        delay = self._policy.delay_seconds(failure, tries, self._jitter())
        if delay is None or self._clock.now() + timedelta(seconds=delay) >= shard.deadline:
            return None
        return delay

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
        if shard.method is Method.SCORE_CHOICES:
            return await self._engine.score_choices(
                shard.model, sample.prompt, sample.choices, truncate_left=shard.truncate_left
            )
        if not sample.choices:
            return await self._engine.generate(shard.model, sample.prompt, shard.sampling)
        prompt = instructed_prompt(sample.prompt, sample.choices)
        if shard.method is Method.CONSTRAINED:
            return await self._ask_constrained(shard, prompt, sample.choices)
        return await self._engine.generate(shard.model, prompt, shard.sampling)

    async def _ask_constrained(self, shard: Shard, prompt: Prompt, choices: Sequence[str]) -> Generated:
        """A server may leave out of account what it was told: then what it said is no answer."""
        sampling = constrained_sampling(shard.sampling, prompt, choices)
        generated = await self._engine.generate(shard.model, prompt, sampling)
        if generated.text.strip() not in option_texts(choices):
            raise ProviderFailed(
                "The answer is none of the choices, though decoding was constrained to them."
            )
        return generated


def _bounded(result: Generated | ScoredChoices) -> Generated | ScoredChoices | Failure:
    """An answer that no message could carry is no answer."""
    if isinstance(result, Generated) and len(result.text) > LONGEST_ANSWER_CHARACTERS:
        message = f"The answer has more than {LONGEST_ANSWER_CHARACTERS:,} characters; lower max_tokens."
        return Failure(FailureClass.PROVIDER_ERROR, message)
    return result
