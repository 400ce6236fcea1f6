"""A later epoch of a planned run: its record is opened again, and what is missing becomes new shards."""

from dataclasses import dataclass

from services.scheduler.ports import Fence, LedRunStore, PlanRecord, PlanToOpen, RunRecord, RunStore
from services.scheduler.runs.run import Run
from services.scheduler.shards.add_missing_shards import AddMissingShards
from services.scheduler.shards.plan_run import RunStopped


@dataclass(frozen=True)
class PlanRetry:
    runs: RunStore
    led_runs: LedRunStore
    record: RunRecord
    missing_shards: AddMissingShards

    async def plan(self, fence: Fence, run: Run) -> None:
        """Raises `RunStopped`; a crash in between starts it anew."""
        tasks = await self.runs.planned_tasks(run.run_id)
        await self.record.open_run(run, PlanToOpen())
        if not await self.missing_shards.add(fence, run, tasks):
            raise RunStopped
        planned = PlanRecord(tasks, run.total, dict(run.environment), run.reused_answers)
        if not await self.led_runs.mark_planned(fence, run, planned):
            raise RunStopped
