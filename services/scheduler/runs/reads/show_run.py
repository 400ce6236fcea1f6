"""Shows one run with its progress, its wait in the queue and its changes."""

from dataclasses import dataclass, replace

from proctor.values.run import RunId, RunState
from services.scheduler.changes.ports import ChangeList
from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.run_snapshot import RunSnapshot

# The latest; the list of changes has the others.
MAX_CHANGES = 20


@dataclass(frozen=True, slots=True)
class ShowRun:
    runs: RunStore
    count_runs: CountRuns
    forecasts: ForecastQueue
    changes: ChangeList

    async def show(self, run_id: RunId) -> RunSnapshot:
        run = await self.runs.get(run_id)
        tasks = await self.runs.planned_tasks(run_id) if run.planned_epoch else ()
        counts = await self.count_runs.count(run)
        waits = await self.forecasts.waits([run] if run.state is RunState.PENDING else [])
        changes = await self.changes.page(MAX_CHANGES, None, object_id=run_id)
        snapshot = self.count_runs.snapshot(run, counts, waits.get(run_id), tasks)
        return replace(snapshot, changes=changes.changes)
