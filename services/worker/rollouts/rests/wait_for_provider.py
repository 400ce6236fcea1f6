"""Bounds the waits of rollouts for a provider that limits the rate or is away: they rest, then the run fails.

Of the resting rollouts of a run one asks at a time, until a rollout of the run has an answer: a provider that
is away, or a limit that stays, costs others of the pool no more than that.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from proctor.values.outcome import Outcome
from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.worker.engines.errors import ModelRefused
from services.worker.execution.request_wait import RequestWait
from services.worker.execution.run_states import RefusedRuns
from services.worker.execution.shard import Shard
from services.worker.rollouts.rests.rest import Rest

_LOOK_SECONDS = 1.0
log = get_logger()


@dataclass(frozen=True, slots=True)
class RestTimes:
    """After `rest_seconds` of waiting a rollout rests; a run without any answer for `most_seconds` fails."""

    rest_seconds: float = 60.0
    most_seconds: float = 1800.0


@dataclass(slots=True, eq=False)
class _RolloutWait(RequestWait):
    """`waited` are the seconds in which the request was not sent; from `rested_at` on the rollout rests."""

    may_ask: Callable[["_RolloutWait"], bool] = field(kw_only=True)
    waited: float = 0.0
    rested_at: float | None = None

    async def until_turn(self) -> None:
        while self.rested_at is not None and not self.may_ask(self):  # noqa: ASYNC110  # others change it
            await asyncio.sleep(_LOOK_SECONDS)


@dataclass(slots=True)
class WaitForProvider:
    refused_runs: RefusedRuns
    clock: Clock
    times: RestTimes = field(default_factory=RestTimes)
    # The resting rollout of a run, in its epoch, that asks.
    _asking: dict[tuple[RunId, int], RequestWait] = field(default_factory=dict)

    async def execute(
        self,
        shard: Shard,
        rest: Rest,
        execute: Callable[[RequestWait], Coroutine[None, None, Outcome | None]],
    ) -> Outcome | None:
        """The outcome of a request. Raises what `execute` does, SandboxError, BegunAnew, and ModelRefused."""
        wait = _RolloutWait(may_ask=lambda own: self._may_ask(shard, own))
        if rest.is_resting:
            wait.rested_at = self.clock.monotonic()
        asking = asyncio.create_task(execute(wait), name="ask a model")
        try:
            await self._until_done(shard, rest, wait, asking)
        finally:
            asking.cancel()
            # A request that is cancelled is at its end before anything else begins.
            await asyncio.wait((asking,))
            if self._asking.get((shard.run_id, shard.epoch)) is wait:
                del self._asking[shard.run_id, shard.epoch]
        outcome = asking.result()
        if rest.is_resting and outcome is not None:
            await rest.end()
            log.info("rollout goes on", run_id=shard.run_id, shard=shard.number)
        return outcome

    async def _until_done(
        self, shard: Shard, rest: Rest, wait: _RolloutWait, asking: "asyncio.Task[Outcome | None]"
    ) -> None:
        began = looked = self.clock.monotonic()
        may_rest = True
        while not (await asyncio.wait((asking,), timeout=_LOOK_SECONDS))[0]:
            now = self.clock.monotonic()
            elapsed, looked = now - looked, now
            if wait.is_sent:
                continue
            wait.waited += elapsed
            if may_rest and wait.rested_at is None and self._is_to_rest(shard, wait):
                may_rest = await self._rest(shard, rest, wait)
            quiet_since = max(began, self.refused_runs.answered_at(shard))
            if min(wait.waited, now - quiet_since) >= self.times.most_seconds:
                raise self._given_up(shard, wait)

    def _is_to_rest(self, shard: Shard, wait: _RolloutWait) -> bool:
        """Where another of the run rests and asks, nothing is gained by waiting beside it."""
        return wait.waited >= self.times.rest_seconds or (shard.run_id, shard.epoch) in self._asking

    async def _rest(self, shard: Shard, rest: Rest, wait: _RolloutWait) -> bool:
        if await rest.begin():
            wait.rested_at = self.clock.monotonic()
            log.info(
                "rollout rests", run_id=shard.run_id, shard=shard.number, failure=str(wait.failure or "")
            )
        return rest.is_resting

    def _may_ask(self, shard: Shard, wait: _RolloutWait) -> bool:
        """Whether it is the turn of a resting rollout."""
        assert wait.rested_at is not None
        is_answered = self.refused_runs.answered_at(shard) > wait.rested_at
        return is_answered or self._asking.setdefault((shard.run_id, shard.epoch), wait) is wait

    def _given_up(self, shard: Shard, wait: RequestWait) -> ModelRefused:
        last = f" Its last failure: {wait.failure}" if wait.failure else ""
        reason = f"No answer for {self.times.most_seconds:,.0f} s, so its rollouts wait no longer.{last}"
        self.refused_runs.give_up(shard, reason)
        return ModelRefused(reason)
