"""What results misses of an open run becomes shards: of a retry, or of a run that took stored answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.scheduler.ports import Fence, LedRunStore, RunRecord
from services.scheduler.runs.run import Run
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.shards.shard_plan import MissingSample, shards_of_missing

_MISSING_PER_WRITE = 10_000


@dataclass(frozen=True)
class AddMissingShards:
    runs: LedRunStore
    record: RunRecord

    async def add(self, fence: Fence, run: Run, tasks: Sequence[PlannedTask]) -> bool:
        """In place of what a planning that broke off has left. False where the run was stopped."""
        await self.runs.drop_shards(fence, run)
        held: list[MissingSample] = []
        async for item in self.record.missing(run.run_id, run.epoch):
            held.append(item)
            if len(held) == _MISSING_PER_WRITE:
                if not await self._write(fence, run, tasks, held):
                    return False
                held = []
        return await self._write(fence, run, tasks, held)

    async def _write(
        self, fence: Fence, run: Run, tasks: Sequence[PlannedTask], missing: list[MissingSample]
    ) -> bool:
        first = await self.runs.next_shard_number(run)
        shards = list(shards_of_missing(missing, tasks, first))
        return not shards or await self.runs.add_shards(fence, run, shards)
