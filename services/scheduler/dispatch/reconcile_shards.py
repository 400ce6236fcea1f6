"""Lost shards are sent again on evidence: outcomes are missing, and no message of the run exists."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.scheduler.dispatch.dispatch_shards import DispatchedRun
from services.scheduler.dispatch.ports import ClosableRecord, ShardStream
from services.scheduler.metrics import RECONCILED_SHARDS
from services.scheduler.planning.ports import ShardMoves, ShardStore
from services.scheduler.planning.shard import MissingSample, Shard, shards_of_missing
from services.scheduler.progress.progress_tracker import ProgressTracker

log = get_logger()


@dataclass(frozen=True, slots=True)
class ReconcileShards:
    shards: ShardStore
    record: ClosableRecord
    stream: ShardStream
    tracker: ProgressTracker
    clock: Clock

    async def is_quiet(self, dispatched_run: DispatchedRun) -> bool:
        """Nothing is on its way. Asked in this order: outcomes are stored before work is acknowledged."""
        run_id = dispatched_run.run.run_id
        # The other order would miss an outcome that is stored between the two questions.
        if await self.stream.pending_work(dispatched_run.run):
            return False
        return not await self.stream.pending_outcomes(run_id)

    async def refresh_counts(self, dispatched_run: DispatchedRun) -> None:
        report = await self.record.counts(dispatched_run.run.run_id, includes_shards=True)
        self.tracker.record(report, self.clock.monotonic())

    async def reconcile(self, dispatched_run: DispatchedRun) -> None:
        """Compares the dispatched shards with what results misses; only for a quiet run."""
        dispatched = dispatched_run.ledger.dispatched
        shard_of = {
            (sample, shard.rollout): shard.number for shard in dispatched.values() for sample in shard.samples
        }
        # Results lists what is missing in this order too (rollout, then sample).
        last = max(((rollout, sample) for sample, rollout in shard_of), default=(-1, -1))
        lost: dict[int, list[int]] = {}
        unsharded: list[MissingSample] = []
        async for item in self.record.missing(dispatched_run.run.run_id, dispatched_run.run.epoch):
            number = shard_of.get((item.sample, item.rollout))
            if number is not None:
                lost.setdefault(number, []).append(item.sample)
            # Only when all is sent: before, a missing sample without a dispatched shard is just not sent yet.
            elif dispatched_run.ledger.is_drained:
                unsharded.append(item)
            elif (item.rollout, item.sample) > last:
                break  # from here on it misses what was never sent
        done = [number for number in dispatched if number not in lost]
        returned = [replace(dispatched[number], samples=samples) for number, samples in lost.items()]
        await self._store(dispatched_run, done, returned)
        RECONCILED_SHARDS.inc(len(returned))
        await self._shard(dispatched_run, unsharded)
        log.info(
            "reconciled",
            run_id=dispatched_run.run.run_id,
            done=len(done),
            again=len(returned),
            unsharded=len(unsharded),
        )

    async def _store(
        self, dispatched_run: DispatchedRun, done: Sequence[int], returned: Sequence[Shard]
    ) -> None:
        if done:
            await self.shards.move(dispatched_run.fencing_token, dispatched_run.run, ShardMoves(done=done))
        if returned:
            await self.shards.return_shards(dispatched_run.fencing_token, dispatched_run.run, returned)

    async def _shard(self, dispatched_run: DispatchedRun, unsharded: Sequence[MissingSample]) -> None:
        """Missing samples whose shard counts as done: another shard's outcomes were counted for it."""
        if unsharded:
            # New numbers: outcomes that still arrive under an old one must not count for these.
            first = await self.shards.next_shard_number(dispatched_run.run)
            found = list(shards_of_missing(unsharded, dispatched_run.tasks, first))
            await self.shards.add_shards(dispatched_run.fencing_token, dispatched_run.run, found)
