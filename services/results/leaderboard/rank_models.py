"""Ranks the models of a suite by their latest complete runs, or by their best ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.values.scoring import ScoringMethod
from services.common.clock import Clock
from services.results.checked_fields import InvalidField
from services.results.comparison.comparison import StoredDifference
from services.results.comparison.ports import StoredDifferences
from services.results.leaderboard.leaderboard import (
    Board,
    BoardEntry,
    LeaderboardEntry,
    baseline_standings,
    choose_terms,
    entries_apart,
    ranked_entries,
    standing_apart,
    standing_on_board,
    trend_of,
)
from services.results.leaderboard.ports import BoardStore, PairComparer
from services.results.leaderboard.ranking import PValues, ranks, ties, told_apart, uncompared, untested
from services.results.statistics.errors import UnknownMetric
from services.results.statistics.metrics import ACCURACY, SCORE, metric_named

DEFAULT_LIMIT = 10
MOST_LISTED = 100
MOST_COMPARED = 20
COMPARING_SECONDS = 2.0
"""What one reading may spend on pairs that nobody compared; the one under way is finished."""


@dataclass(frozen=True, slots=True)
class BoardQuery:
    """Limit 0: the default; no scoring method: that of most models; no project: all of them."""

    suite: str
    metric: str = ""
    limit: int = 0
    is_best: bool = False
    scoring_method: ScoringMethod | None = None
    num_fewshot: int | None = None
    project_id: int | None = None


class RankModels:
    def __init__(
        self, boards: BoardStore, differences: StoredDifferences, compare_pair: PairComparer, clock: Clock
    ) -> None:
        self._boards = boards
        self._differences = differences
        self._compare_pair = compare_pair
        self._clock = clock

    async def __call__(self, query: BoardQuery) -> Board:
        """A suite without runs has an empty board."""
        if not 0 <= query.limit <= MOST_LISTED:
            raise InvalidField(field="limit", problem=f"must be 1 to {MOST_LISTED}, or 0 for {DEFAULT_LIMIT}")
        metric = await self._metric(query)
        if metric is None:
            return Board(query.metric or ACCURACY)
        entries = await self._boards.entries(query.suite, metric, query.project_id, is_best=query.is_best)
        terms = choose_terms(entries, query.scoring_method, query.num_fewshot)
        ranked = ranked_entries(entries, terms)
        apart = entries_apart(entries, ranked)
        baselines = await self._boards.baselines([entry.run.run_id for entry in ranked or apart])
        limit = query.limit or DEFAULT_LIMIT
        return Board(
            metric,
            terms.scoring_method,
            await self._standings(ranked[:MOST_LISTED], limit),
            [standing_apart(entry, terms) for entry in apart[:limit]],
            baseline_standings(baselines, metric),
            len(ranked),
            max((entry.run.closed_at for entry in (*ranked, *apart)), default=None),
        )

    async def _metric(self, query: BoardQuery) -> str | None:
        """None where the suite has no complete runs."""
        metrics = await self._boards.metrics(query.suite, query.project_id)
        metric = metric_named(query.metric, metrics)
        if metrics and metric is None:
            raise UnknownMetric(metric=query.metric or ACCURACY, supported=", ".join(metrics))
        return metric

    async def _standings(self, entries: Sequence[BoardEntry], limit: int) -> list[LeaderboardEntry]:
        """With ranks, ties and trends, mostly from what was compared when the runs were closed.

        A rank is that among all entries, however few of them are listed.
        """
        if not entries:
            return []
        metric = entries[0].metric
        p_values = await self._p_values(entries, limit)
        apart = told_apart(len(entries), p_values)
        given, listed = ranks(len(entries), apart), entries[:limit]
        tied, unknown = ties(len(listed), p_values, apart), untested(len(listed), p_values)
        moved = await self._moved(listed, metric)
        return [
            replace(
                standing_on_board(entry),
                rank=given[place],
                tied_with=tuple(listed[other].run.model for other in tied[place]),
                not_compared_with=tuple(listed[other].run.model for other in unknown[place]),
                trend=trend_of(entry.previous_run_id, moved.get((entry.run.run_id, entry.previous_run_id))),
            )
            for place, entry in enumerate(listed)
        ]

    async def _p_values(self, entries: Sequence[BoardEntry], limit: int) -> PValues:
        """Of the entries; those of listed ones that nobody compared are made now, as far as there is time."""
        run_ids, metric = [entry.run.run_id for entry in entries], entries[0].metric
        p_values = await self._differences.p_values(run_ids, metric)
        given = ranks(len(entries), told_apart(len(entries), p_values))[:limit]
        if not uncompared(given, p_values):
            return p_values
        # Whoever is compared has a score, but not every metric of a board can be compared (pass@k).
        scores = await self._differences.p_values(run_ids, SCORE)
        missing = [pair for pair in uncompared(given, scores) if pair not in p_values]
        await self._compare([(run_ids[first], run_ids[second]) for first, second in missing])
        return await self._differences.p_values(run_ids, metric) if missing else p_values

    async def _compare(self, pairs: Sequence[tuple[str, str]]) -> None:
        """What is kept is found by the next reading, which goes on from there."""
        started = self._clock.monotonic()
        for first, second in pairs[:MOST_COMPARED]:
            if self._clock.monotonic() - started < COMPARING_SECONDS:
                await self._compare_pair(first, second)

    async def _moved(
        self, entries: Sequence[BoardEntry], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        """What each run proves about the run of its model before."""
        with_previous = [entry for entry in entries if entry.previous_run_id]
        run_ids = [entry.run.run_id for entry in with_previous]
        previous = [entry.previous_run_id for entry in with_previous]
        return await self._differences.of_runs([*run_ids, *previous], metric) if run_ids else {}
