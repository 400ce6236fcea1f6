"""Shows the length of the queue and its longest waits as metrics."""

from dataclasses import dataclass
from datetime import timedelta

from proctor.values.priority import Priority
from proctor.values.run import RunState
from services.common.clock import Clock
from services.scheduler import metrics
from services.scheduler.limits.ports import LimitStore
from services.scheduler.runs.admission.postgres import PostgresQueue

_SHOWN = (RunState.PENDING, RunState.RUNNING)


@dataclass(frozen=True, slots=True)
class ReportQueue:
    depths: PostgresQueue
    limits: LimitStore
    clock: Clock

    async def report(self) -> None:
        found = {(each.state, each.priority): each for each in await self.depths.depths()}
        now = self.clock.now()
        for priority in Priority:
            for state in _SHOWN:
                depth = found.get((state, priority))
                metrics.QUEUE_RUNS.labels(state, priority).set(depth.runs if depth else 0)
            pending = found.get((RunState.PENDING, priority))
            waited = now - pending.oldest if pending else timedelta()
            metrics.OLDEST_WAIT.labels(priority).set(max(waited.total_seconds(), 0.0))
        metrics.RUN_SLOTS.set((await self.limits.limits()).max_running_runs)
