"""Compares each closed run with its peers and stores the differences, for leaderboards and trends.

The close of a run neither waits for this nor fails with it. What a crash cut short is found again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.names.project import is_declared
from services.results.comparison.compare_runs import StoreComparison
from services.results.comparison.ports import ComparisonStore
from services.results.leaderboard.leaderboard import Candidate, ranked_candidates
from services.results.leaderboard.ports import LeaderboardStore
from services.results.leaderboard.postgres import PostgresPeers
from services.results.leaderboard.process_leases import MAX_STARTS, ProcessLeases
from services.results.leases.lease import Lease, WorkKind
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.statistics.metric_names import SCORE

# A leaderboard separates neighbours, and a pair may take `PAIR_SECONDS`. The previous run comes on top.
MAX_PEERS = 50
# The first start has little time, so that a slow pair does not hold up other runs; the second has more.
PAIR_SECONDS = 10.0
SLOW_PAIR_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ComparePeers:
    records: RunRecordStore
    leaderboard: LeaderboardStore
    comparisons: ComparisonStore
    peers: PostgresPeers
    leased_runs: ProcessLeases
    store_comparison: StoreComparison

    async def compare(self) -> None:
        """Compares the runs that wait for it; comparisons that are stored already are not made again.

        A pair that takes long is put off until the other runs are compared, and given more time then.
        """
        await self.leased_runs.process(WorkKind.COMPARISON, self._compare)

    async def _compare(self, lease: Lease) -> bool:
        record = await self.records.find(lease.work.run_id)
        # A retried run waits again once its new epoch is closed.
        if record is None or record.epoch != lease.work.epoch:
            return True
        peers = await self._peers(record)
        known = await self.comparisons.compared_with(lease.work.run_id, peers)
        missing = [peer for peer in peers if peer not in known]
        slow = missing if lease.starts > MAX_STARTS else await self._slow(lease, missing)
        if slow and lease.starts == 1:
            return False
        for peer in slow:
            await self.store_comparison.give_up(lease.work.run_id, peer)
        await self.peers.mark_compared(record)
        return True

    async def _slow(self, lease: Lease, peers: Sequence[str]) -> list[str]:
        """Compares with them; gives those that took too long."""
        seconds = PAIR_SECONDS if lease.starts == 1 else SLOW_PAIR_SECONDS
        return [
            peer for peer in peers if not await self.store_comparison.store(lease.work.run_id, peer, seconds)
        ]

    async def _peers(self, record: RunRecord) -> list[str]:
        """The model's previous run, and the latest runs of all other models under the same conditions, on the
        leaderboard that the run is on.

        Where there are many, those with the nearest scores. A run that cannot be ranked has no peers.
        """
        closed = await self.leaderboard.closed_run(record.plan.run_id)
        if (
            closed is None
            or not closed.result.is_whole
            or all(scoring.is_unscored for scoring in record.plan.scorings)
        ):
            return []
        conditions = closed.result.conditions.of_metric(SCORE)
        project_id = closed.project_id if is_declared(closed.project_id) else None
        candidates = await self.leaderboard.candidates(closed.benchmark, SCORE, project_id, is_best=False)
        alike = ranked_candidates(candidates, conditions, is_best=False)
        own = next((_mean(one) for one in alike if one.run.model == closed.model), 0.0)
        others = [one for one in alike if one.run.model != closed.model]
        nearest = sorted(others, key=lambda one: abs(_mean(one) - own))[:MAX_PEERS]
        previous = await self.peers.previous_run(record.plan, conditions)
        return [*([previous] if previous else []), *(one.run.run_id for one in nearest)]


def _mean(candidate: Candidate) -> float:
    return candidate.figure.mean or 0.0
