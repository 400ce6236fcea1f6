"""What was lost is sent again, on evidence: something is missing, and no message of the run is anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.common.clock import Clock
from services.scheduler.ports import LedRunStore, RunRecord, ShardMoves, ShardStore, ShardWire
from services.scheduler.shards.dispatch_shards import DispatchedRun
from services.scheduler.shards.progress_board import ProgressBoard
from services.scheduler.shards.shard import Shard
from services.scheduler.shards.shard_plan import MissingSample, shards_of_missing


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What was found: shards done after all, shards to send again, samples that no stored shard holds."""

    done: int
    returned: int
    orphaned: int


@dataclass(frozen=True)
class ReconcileShards:
    runs: LedRunStore
    shards: ShardStore
    record: RunRecord
    wire: ShardWire
    board: ProgressBoard
    clock: Clock

    async def is_quiet(self, target: DispatchedRun) -> bool:
        """Nothing is on its way. Asked in this order: outcomes are stored before work is acknowledged."""
        run_id = target.run.run_id
        if await self.wire.pending_work(run_id):
            return False
        return not await self.wire.pending_outcomes(run_id)

    async def refresh_counts(self, target: DispatchedRun) -> None:
        self.board.record(await self.record.counts(target.run.run_id), self.clock.monotonic())

    async def reconcile(self, target: DispatchedRun) -> Reconciled:
        """Compares what is on the wire by our books with what results misses; only for a quiet run."""
        on_wire = target.ledger.on_wire
        shard_of = {
            (sample, shard.rollout): shard.number for shard in on_wire.values() for sample in shard.samples
        }
        last = max(((rollout, sample) for sample, rollout in shard_of), default=(-1, -1))
        lost: dict[int, list[int]] = {}
        orphans: list[MissingSample] = []
        async for item in self.record.missing(target.run.run_id, target.run.epoch):
            number = shard_of.get((item.sample, item.rollout))
            if number is not None:
                lost.setdefault(number, []).append(item.sample)
            elif target.ledger.is_drained:
                orphans.append(item)
            elif (item.rollout, item.sample) > last:
                break  # from here on it misses what was never sent
        done = [number for number in on_wire if number not in lost]
        returned = [replace(on_wire[number], samples=samples) for number, samples in lost.items()]
        await self._store(target, done, returned)
        await self._adopt(target, orphans)
        return Reconciled(len(done), len(returned), len(orphans))

    async def _store(self, target: DispatchedRun, done: Sequence[int], returned: Sequence[Shard]) -> None:
        if done:
            await self.shards.move(target.fence, target.run, ShardMoves(done=done))
        if returned:
            await self.shards.give_back(target.fence, target.run, returned)

    async def _adopt(self, target: DispatchedRun, orphans: Sequence[MissingSample]) -> None:
        """Missing samples whose shard counts as done: another shard's outcomes were counted for it."""
        if orphans:
            first = await self.runs.next_shard_number(target.run)
            found = list(shards_of_missing(orphans, target.tasks, first))
            await self.runs.add_shards(target.fence, target.run, found)
