"""Notes once that a run has nearly spent its budget, and that it brings nothing."""

from datetime import timedelta

from proctor.values.names.notices import BUDGET_SHARE, STUCK_MINUTES
from proctor.values.run import RunCounts
from proctor.values.usage import TokenUsage
from services.common.clock import Clock
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.ports import EventLog
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.run_events import budget_nearly_spent, stuck

_STUCK_SECONDS = timedelta(minutes=STUCK_MINUTES).total_seconds()


class RunWatch:
    """Lives as long as the driver of a run: a new leader waits again before it calls a run stuck, and what it
    notes again is stored once."""

    def __init__(self, events: EventLog, token: FencingToken, clock: Clock) -> None:
        self._events = events
        self._token = token
        self._clock = clock
        self._recorded = -1
        self._since = 0.0
        self._has_told_budget = False
        self._has_told_stuck = False

    async def look(self, run: Run, counts: RunCounts | None, unscored: TokenUsage) -> None:
        await self._look_at_budget(run, counts, unscored)
        await self._look_at_progress(run, counts.recorded if counts else 0)

    async def _look_at_budget(self, run: Run, counts: RunCounts | None, unscored: TokenUsage) -> None:
        limit = run.order.max_cost
        if self._has_told_budget or limit is None or run.price is None or counts is None:
            return
        cost = run.price.cost(counts.usage.plus(unscored))
        if cost >= BUDGET_SHARE * limit:
            await self._events.record(self._token, budget_nearly_spent(run, cost, self._clock.now()))
            self._has_told_budget = True

    async def _look_at_progress(self, run: Run, recorded: int) -> None:
        now = self._clock.monotonic()
        if recorded != self._recorded:
            self._recorded, self._since, self._has_told_stuck = recorded, now, False
        elif not self._has_told_stuck and now - self._since >= _STUCK_SECONDS:
            await self._events.record(self._token, stuck(run, recorded, self._clock.now()))
            self._has_told_stuck = True
