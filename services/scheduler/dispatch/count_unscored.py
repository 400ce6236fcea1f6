"""Counts the tokens of rollouts without an outcome: cancelled, or cut off by the limits of their run."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.usage import TokenUsage
from services.scheduler.dispatch.ports import RolloutUse
from services.scheduler.planning.ports import MissingSamples
from services.scheduler.planning.shard import Shard
from services.scheduler.runs.lifecycle.run import Run


@dataclass(frozen=True, slots=True)
class CountUnscored:
    use: RolloutUse
    record: MissingSamples

    async def settle(self, run: Run) -> bool:
        """Finds the rollouts of a finished run that have no outcome. False while workers may work on one."""
        if not await self.use.has_any(run):
            return True
        missing = [item async for item in self.record.missing(run.run_id, run.epoch)]
        return await self.use.settle(run, missing)

    async def count(self, run: Run, in_flight: Sequence[Shard] = ()) -> TokenUsage:
        """Tokens that no outcome counts, in all epochs of the run, with those of rollouts in flight."""
        return await self.use.unscored(run, in_flight)
