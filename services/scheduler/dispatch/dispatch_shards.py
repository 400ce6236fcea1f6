"""Dispatches shards within a credit, which finished shards free. Attempts are stored before sending."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil

from proctor.values.sample import SHARD_SAMPLES
from services.scheduler.dispatch.ports import ShardStream
from services.scheduler.dispatch.shard_ledger import ShardLedger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.metrics import DISPATCHED_SHARDS
from services.scheduler.planning.ports import ShardMoves, ShardStore
from services.scheduler.planning.shard import FilledShard, Shard, most_samples
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.lifecycle.cost_limit import affordable_samples
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.workers.ports import WorkerRegistry

# Shards that are filled and sent in one go: one read of samples, one write of attempts.
BATCH_SHARDS = 16


@dataclass(frozen=True, slots=True)
class CreditRule:
    """`min_shards` makes a run visible before any worker is; `max_shards` bounds its part of the stream.

    `seconds_ahead`: what the workers get through in that time is on its way to them. The path there and back
    takes longer than a fast model takes for what a worker asks at a time.
    """

    min_shards: int
    max_shards: int
    seconds_ahead: float

    def credit(
        self,
        capacity: float,
        runs: int,
        samples_per_second: float | None,
        shard_samples: float = SHARD_SAMPLES,
        largest_samples: float = SHARD_SAMPLES,
    ) -> int:
        """`capacity`: samples that the pool's live workers take at a time, shared by its `runs`.

        `shard_samples` are those of a shard of this run, `largest_samples` those of the run with the largest.
        """
        # Twice what the workers hold: the next load waits in the stream when one is done.
        for_workers = 2 * capacity / runs
        for_speed = (samples_per_second or 0.0) * self.seconds_ahead
        wanted = ceil(max(for_workers, for_speed) / shard_samples)
        # As many samples for each run: workers take shards in turn, whichever size they have.
        floor = ceil(self.min_shards * largest_samples / max(shard_samples, SHARD_SAMPLES))
        return min(max(floor, wanted), self.max_shards)


def capacity_of(concurrencies: Mapping[int, int], shard_samples: float = SHARD_SAMPLES) -> float:
    """Samples that so many workers of each concurrency hold. A worker takes a whole shard at least."""
    return sum(max(each, shard_samples) * workers for each, workers in concurrencies.items())


def worth_sending(credit: int) -> int:
    """Shards that are sent in one go, where more wait: a go costs as much for one as for many.

    Three quarters of the credit are on their way meanwhile, so no worker waits for it.
    """
    return max(credit // 4, 1)


@dataclass(frozen=True, slots=True)
class DispatchedRun:
    """A running run with its plan, as the leader of this term drives it."""

    fencing_token: FencingToken
    run: Run
    tasks: Sequence[PlannedTask]
    ledger: ShardLedger


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """Runs of a pool that are driven, and the bytes that these may still put onto the stream.

    Each pool has a share of the stream: where no worker takes a pool's shards, others find it not full.
    `shard_samples`: of a shard in the mean, of the run whose shards are the largest now.
    """

    runs: int
    room_bytes: float
    shard_samples: float = SHARD_SAMPLES


@dataclass(frozen=True, slots=True)
class DispatchShards:
    shards: ShardStore
    stream: ShardStream
    tracker: ProgressTracker
    registry: WorkerRegistry
    rule: CreditRule

    async def reload(self, dispatched_run: DispatchedRun) -> None:
        """Begins from what is stored: at the start of a term, and after shards were given back."""
        dispatched_run.ledger.reset(await self.shards.dispatched(dispatched_run.run))

    def collect_done(self, dispatched_run: DispatchedRun) -> None:
        """Marks shards as done whose outcomes are all recorded."""
        recorded = self.tracker.take_shard_counts(dispatched_run.run.run_id)
        dispatched_run.ledger.remove_done(dispatched_run.ledger.done_among(recorded))

    async def save_done(self, dispatched_run: DispatchedRun) -> None:
        done = dispatched_run.ledger.take_unsaved_done()
        if done:
            await self.shards.move(dispatched_run.fencing_token, dispatched_run.run, ShardMoves(done=done))

    async def dispatch(self, dispatched_run: DispatchedRun, load: PoolLoad, now: float) -> None:
        """Sends as much as credit and room allow, where that is worth it; what is done is written with it."""
        ledger, room_bytes = dispatched_run.ledger, load.room_bytes
        credit = self._credit(dispatched_run, load, now)
        if dispatched_run.run.order.parallel is not None:
            credit = await self._within_group(dispatched_run, credit)
        elif not ledger.is_drained and credit - len(ledger.dispatched) < worth_sending(credit):
            return
        # A run without a dispatched shard sends one all the same: others of its pool may have the room.
        while (free := credit - len(ledger.dispatched)) > 0 and (room_bytes > 0 or not ledger.dispatched):
            batch = await self._next_shards(dispatched_run, min(free, BATCH_SHARDS))
            sent_bytes = await self._send(dispatched_run, batch, room_bytes) if batch else 0
            if not sent_bytes:
                break
            room_bytes -= sent_bytes
        await self.save_done(dispatched_run)

    async def _within_group(self, dispatched_run: DispatchedRun, credit: int) -> int:
        """The credit that the run's group has room for now. Storing what is sent counts again."""
        # First: other runs of the group may take these places, also where this one sends nothing more.
        await self.save_done(dispatched_run)
        dispatched = len(dispatched_run.ledger.dispatched)
        if dispatched_run.ledger.is_drained or dispatched >= credit:
            return credit
        return int(min(credit, dispatched + await self.shards.room(dispatched_run.run)))

    async def _next_shards(self, dispatched_run: DispatchedRun, wanted: int) -> Sequence[Shard]:
        ledger = dispatched_run.ledger
        if ledger.ready_count < wanted and not ledger.has_read_all:
            # Four batches for one query: the read costs about the same for one batch.
            limit = 4 * BATCH_SHARDS
            ledger.add_ready(await self.shards.planned(dispatched_run.run, ledger.last_read, limit), limit)
        return ledger.next_ready(wanted)

    async def _send(self, dispatched_run: DispatchedRun, batch: Sequence[Shard], room_bytes: float) -> int:
        """The bytes that were sent, of the first shard in any case; 0 if the run was stopped or its group is
        full."""
        outgoing = [replace(shard, attempt=shard.attempt + 1) for shard in batch]
        filled = _first_within(
            room_bytes, await self.stream.fill(dispatched_run.run, dispatched_run.tasks, outgoing)
        )
        outgoing = [one.shard for one in filled]
        moves = ShardMoves(done=dispatched_run.ledger.take_unsaved_done(), dispatched=outgoing)
        # Stored before sent: what is sent and not stored would go out again with the same attempt.
        filled = filled[: await self.shards.move(dispatched_run.fencing_token, dispatched_run.run, moves)]
        if not filled:
            return 0
        dispatched_run.ledger.sent(filled)
        # A crash from here on leaves shards that are counted as sent and are not: reconciling finds them.
        await self.stream.publish(dispatched_run.run, filled)
        DISPATCHED_SHARDS.labels(dispatched_run.run.pool).inc(len(filled))
        return sum(one.size_bytes for one in filled)

    def _credit(self, dispatched_run: DispatchedRun, load: PoolLoad, now: float) -> int:
        """Shards of the run that may be dispatched and are paid for; its first one shows their cost."""
        run, ledger = dispatched_run.run, dispatched_run.ledger
        usual = max(map(most_samples, dispatched_run.tasks), default=SHARD_SAMPLES)
        # Those of a large task grow while it goes on. Smaller ones, of heavy samples, count as whole ones.
        shard_samples = max(usual, ledger.mean_samples)
        largest_of_pool = max(shard_samples, load.shard_samples)
        capacity = capacity_of(self.registry.table().pool(run.pool).concurrencies, largest_of_pool)
        speed = self.tracker.samples_per_second(run.run_id, now)
        credit = self.rule.credit(capacity, load.runs, speed, shard_samples, largest_of_pool)
        counts = self.tracker.counts(run.run_id, run.epoch)
        samples = affordable_samples(run, counts)
        # The budget is in samples, the credit in shards: the largest shard keeps the run within its limit.
        # Where there is a limit, no shard grows.
        largest = max((shard.size for shard in ledger.dispatched.values()), default=usual)
        return int(max(min(credit, samples // largest), 1))


def _first_within(room_bytes: float, filled: Sequence[FilledShard]) -> Sequence[FilledShard]:
    """One at least: a shard may be larger than what any pool has."""
    sizes = accumulate(one.size_bytes for one in filled)
    return filled[: max(sum(size <= room_bytes for size in sizes), 1)]
