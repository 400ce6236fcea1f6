"""Stops a run once results has decided between it and the other run of its order; keeps the two in step."""

from dataclasses import dataclass

from proctor.values.run import RunId, RunState
from proctor.values.sample import SHARD_SAMPLES
from services.common.clock import Clock
from services.common.errors import RunNotFound
from services.common.structured_logs import get_logger
from services.scheduler.dispatch.ports import ClosableRecord
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.lifecycle.ports import LedRunStore, RunStore
from services.scheduler.runs.lifecycle.run import Run

# The other run may have brought the decision, which is not reported to this one.
_ASK_SECONDS = 0.25
# What one run has more than the other is no part of a pair. It is asked all the same, or the faster
# model would idle between two shards of the slower one.
LEAD_OUTCOMES = 2 * SHARD_SAMPLES
# A run whose model answers nothing for so long keeps the other one no longer.
PATIENCE_SECONDS = 60.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class DecideRun:
    runs: RunStore
    led: LedRunStore
    record: ClosableRecord
    tracker: ProgressTracker
    clock: Clock


class RunDecision:
    """For one term of the leader and one run. Asked for the first time at once: an earlier leader may have
    ended between the decision and the stop."""

    def __init__(self, context: DecideRun, token: FencingToken) -> None:
        self._context = context
        self._token = token
        self._recorded = -1
        self._asked_at = float("-inf")
        self._others = -1
        self._others_since = 0.0

    async def stops(self, run: Run) -> bool:
        """Whether the run is closing from now on, with the answers that it has."""
        if run.order.until_decided is None or not self._is_due(run):
            return False
        decision = await self._context.record.decide(run)
        # Wakes the other one: it may go on, or stop too.
        self._context.tracker.touch(run.order.until_decided.against_run_id, self._now())
        if decision is None or not await self._context.led.stop(self._token, run, decision):
            return False
        log.info("run stops early", run_id=run.run_id, verdict=decision.verdict, pairs=decision.pairs)
        return True

    async def waits(self, run: Run) -> bool:
        """Whether it has asked more than the other run, which is running, and sends nothing for now."""
        wanted = run.order.until_decided
        if wanted is None:
            return False
        own, others = [self._context.tracker.recorded(each) for each in (run.run_id, wanted.against_run_id)]
        if others != self._others:
            self._others, self._others_since = others, self._now()
        # Answers that were reused were not asked. How many they are of the other one its row says.
        asked, least = own - run.reused_answers, 0 if run.order.reuse_answers else others
        if asked < least + LEAD_OUTCOMES or self._now() - self._others_since > PATIENCE_SECONDS:
            return False
        try:
            other = await self._context.runs.get(RunId(wanted.against_run_id))
        except RunNotFound:
            return False
        if asked < max(0, others - other.reused_answers) + LEAD_OUTCOMES:
            return False
        # One that has no slot may wait for that of this run.
        return other.state is RunState.RUNNING and not other.is_closing

    def _is_due(self, run: Run) -> bool:
        """After new outcomes, or a while. A run that has all of its outcomes is complete, decided or not."""
        counts, now = self._context.tracker.counts(run.run_id, run.epoch), self._now()
        recorded = counts.recorded if counts else 0
        if recorded >= run.total or (recorded == self._recorded and now - self._asked_at < _ASK_SECONDS):
            return False
        self._recorded, self._asked_at = recorded, now
        return True

    def _now(self) -> float:
        return self._context.clock.monotonic()
