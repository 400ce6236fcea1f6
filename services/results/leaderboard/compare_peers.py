"""Compares each run that was closed with the runs beside it, and keeps what that proves for the leaderboards.

Apart from the close: that neither waits for it nor fails with it, and what a crash cut short is found again.
"""

from services.results.comparison.ports import ComparisonStore
from services.results.leaderboard.conditions import terms_of
from services.results.leaderboard.leaderboard import BoardEntry
from services.results.leaderboard.ports import BoardStore, PairComparer, PeerStore
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.statistics.metrics import SCORE

RUNS_AT_A_TIME = 100
MOST_RIVALS = 50


class StoreComparisons:
    def __init__(
        self,
        records: RunRecordStore,
        boards: BoardStore,
        comparisons: ComparisonStore,
        peers: PeerStore,
        compare_pair: PairComparer,
    ) -> None:
        self._records = records
        self._boards = boards
        self._comparisons = comparisons
        self._peers = peers
        self._compare_pair = compare_pair

    async def __call__(self) -> None:
        """Of the runs that wait. What is cut short is taken up again; what is kept is not made twice."""
        for run_id in await self._peers.waiting(RUNS_AT_A_TIME):
            record = await self._records.find(run_id)
            if record is not None:
                beside = await self._beside(record)
                known = await self._comparisons.compared_with(run_id, beside)
                for other in beside:
                    if other not in known:
                        await self._compare_pair(run_id, other)
                await self._peers.mark_compared(record)

    async def _beside(self, record: RunRecord) -> list[str]:
        """The previous run of the model, and the latest ones of all others on the same terms; where there are
        many, those with the nearest scores. A run that cannot be ranked has none."""
        terms, facts = terms_of(record.plan).of_metric(SCORE), record.plan.facts
        if not terms.is_whole or all(scoring.is_unscored for scoring in record.plan.scorings):
            return []
        entries = await self._boards.entries(facts.suite, SCORE, None, is_best=False)
        alike = [entry for entry in entries if entry.can_be_ranked and entry.terms == terms]
        own = next((_mean(entry) for entry in alike if entry.run.model == facts.model), 0.0)
        rivals = [entry for entry in alike if entry.run.model != facts.model]
        nearest = sorted(rivals, key=lambda entry: abs(_mean(entry) - own))[:MOST_RIVALS]
        previous = await self._peers.previous_run(record.plan)
        return [*([previous] if previous else []), *(entry.run.run_id for entry in nearest)]


def _mean(entry: BoardEntry) -> float:
    return entry.figure.mean or 0.0
