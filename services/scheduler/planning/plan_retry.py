"""A later epoch is planned from what results misses: missing samples become new shards."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.errors import RunStopped
from services.scheduler.planning.ports import MissingSamples, PlanRecord, PlanStore, PlanToOpen, RunRecord
from services.scheduler.planning.shard import MissingSample, shards_of_missing
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.lifecycle.run import Run

_MISSING_PER_WRITE = 10_000


@dataclass(frozen=True)
class AddMissingShards:
    plans: PlanStore
    record: MissingSamples

    async def add(self, token: FencingToken, run: Run, tasks: Sequence[PlannedTask]) -> bool:
        """Replaces shards of an interrupted planning. Returns False if the run was stopped."""
        await self.plans.delete_shards(token, run)
        held: list[MissingSample] = []
        async for item in self.record.missing(run.run_id, run.epoch):
            held.append(item)
            if len(held) == _MISSING_PER_WRITE:
                if not await self._write(token, run, tasks, held):
                    return False
                held = []
        return await self._write(token, run, tasks, held)

    async def _write(
        self, token: FencingToken, run: Run, tasks: Sequence[PlannedTask], missing: list[MissingSample]
    ) -> bool:
        first = await self.plans.next_shard_number(run)
        shards = list(shards_of_missing(missing, tasks, first))
        return not shards or await self.plans.add_shards(token, run, shards)


@dataclass(frozen=True)
class PlanRetry:
    runs: RunStore
    plans: PlanStore
    record: RunRecord
    missing_shards: AddMissingShards

    async def plan(self, token: FencingToken, run: Run) -> None:
        """Raises `RunStopped`; a crash in between starts it anew."""
        tasks = await self.runs.planned_tasks(run.run_id)
        await self.record.open_run(run, PlanToOpen())
        if not await self.missing_shards.add(token, run, tasks):
            raise RunStopped
        planned = PlanRecord(tasks, run.total, dict(run.environment), run.reused_answers)
        if not await self.plans.mark_planned(token, run, planned):
            raise RunStopped
