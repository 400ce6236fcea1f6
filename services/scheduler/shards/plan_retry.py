"""A later epoch of a planned run: its record is opened again, and what is missing becomes new shards."""

from dataclasses import dataclass

from services.scheduler.ports import Fence, LedRunStore, PlanRecord, PlanToOpen, RunRecord, RunStore
from services.scheduler.runs.run import Run
from services.scheduler.shards.plan_run import RunStopped
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.shards.shard_plan import MissingSample, shards_of_missing

_MISSING_PER_WRITE = 10_000


@dataclass(frozen=True)
class PlanRetry:
    runs: RunStore
    led_runs: LedRunStore
    record: RunRecord

    async def plan(self, fence: Fence, run: Run) -> None:
        """Raises `RunStopped`; a crash in between starts it anew."""
        tasks = await self.runs.planned_tasks(run.run_id)
        await self.record.open_run(run, PlanToOpen())
        await self.led_runs.drop_shards(fence, run)
        held: list[MissingSample] = []
        async for item in self.record.missing(run.run_id, run.epoch):
            held.append(item)
            if len(held) == _MISSING_PER_WRITE:
                await self._add(fence, run, tasks, held)
                held = []
        await self._add(fence, run, tasks, held)
        planned = PlanRecord(tasks, run.total, dict(run.environment))
        if not await self.led_runs.mark_planned(fence, run, planned):
            raise RunStopped

    async def _add(
        self, fence: Fence, run: Run, tasks: tuple[PlannedTask, ...], missing: list[MissingSample]
    ) -> None:
        first = await self.led_runs.next_shard_number(run)
        shards = list(shards_of_missing(missing, tasks, first))
        if shards and not await self.led_runs.add_shards(fence, run, shards):
            raise RunStopped
