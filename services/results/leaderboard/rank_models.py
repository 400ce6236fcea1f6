"""Ranks the models of a benchmark by their latest completed runs, or by their best ones."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.values.run import MAX_LEADERBOARD_MODELS
from services.common.checked_fields import checked_number, invalid_field
from services.results.comparison.comparison import StoredDifference
from services.results.comparison.ports import StoredDifferences
from services.results.leaderboard.conditions import EvaluationConditions
from services.results.leaderboard.leaderboard import (
    AskedConditions,
    Candidate,
    Leaderboard,
    LeaderboardEntry,
    PValues,
    baseline_entries,
    choose_conditions,
    distinguishable,
    entry_of,
    partial_note,
    ranked_candidates,
    ranks,
    ties,
    trend_of,
    uncompared,
    unranked_candidates,
    unranked_entry,
    untested,
)
from services.results.leaderboard.ports import LeaderboardStore, PendingComparisons
from services.results.statistics.metric_names import HEADLINE, SCORE, UnknownMetric, metric_named
from services.results.statistics.variance_split import RepetitionSpread

DEFAULT_ENTRIES = 10


@dataclass(frozen=True, slots=True)
class LeaderboardQuery:
    """`max_entries` 0: the default; no project: all of them.

    `like_run_id`: the conditions of this run are asked for, all of them, instead of `asked`.
    """

    benchmark: str
    metric: str = ""
    max_entries: int = 0
    is_best: bool = False
    asked: AskedConditions = field(default_factory=AskedConditions)
    project_id: int | None = None
    like_run_id: str = ""


@dataclass(frozen=True, slots=True)
class RankModels:
    leaderboard: LeaderboardStore
    differences: StoredDifferences
    pending: PendingComparisons

    async def rank(self, query: LeaderboardQuery) -> Leaderboard:
        """A benchmark without runs has an empty leaderboard."""
        max_entries = checked_number(
            "max_entries", query.max_entries, maximum=MAX_LEADERBOARD_MODELS, default=DEFAULT_ENTRIES
        )
        metric = await self._metric(query)
        if metric is None:
            return Leaderboard(query.metric or HEADLINE)
        candidates = await self.leaderboard.candidates(
            query.benchmark, metric, query.project_id, is_best=query.is_best
        )
        conditions = await self._conditions(query, metric, candidates)
        ranked = ranked_candidates(candidates, conditions, is_best=query.is_best)
        unranked = unranked_candidates(candidates, ranked)
        repeated = [one.run.run_id for one in ranked[:max_entries] if one.run_count > 1]
        baselines, (entries, pending), spread = await asyncio.gather(
            self.leaderboard.baselines([one.run.run_id for one in ranked or unranked]),
            self._entries(ranked[:MAX_LEADERBOARD_MODELS], max_entries),
            self._spread(repeated, metric, query.project_id),
        )
        return Leaderboard(
            metric,
            conditions,
            entries,
            [unranked_entry(one, conditions) for one in unranked[:max_entries]],
            baseline_entries(baselines, metric),
            len(ranked),
            max((one.run.closed_at for one in (*ranked, *unranked)), default=None),
            partial_note(query.benchmark, conditions, query.asked)
            if ranked and not query.like_run_id
            else "",
            pending,
            spread,
            any(metric in one.run.result.less_is_better for one in ranked or unranked),
        )

    async def _spread(
        self, run_ids: Sequence[str], metric: str, project_id: int | None
    ) -> RepetitionSpread | None:
        return await self.leaderboard.spread(run_ids, metric, project_id) if run_ids else None

    async def _conditions(
        self, query: LeaderboardQuery, metric: str, candidates: Sequence[Candidate]
    ) -> EvaluationConditions:
        if not query.like_run_id:
            return choose_conditions(candidates, query.asked)
        run = await self.leaderboard.closed_run(query.like_run_id)
        if run is None or run.benchmark != query.benchmark:
            raise invalid_field("like_run_id", f"must be a closed run of {query.benchmark}")
        return run.result.conditions.of_metric(metric)

    async def _metric(self, query: LeaderboardQuery) -> str | None:
        """None where the benchmark has no completed runs."""
        metrics = await self.leaderboard.metrics(query.benchmark, query.project_id)
        metric = metric_named(query.metric, metrics, await self._headline(query))
        if metrics and metric is None:
            raise UnknownMetric(metric=query.metric or HEADLINE, supported=", ".join(metrics))
        return metric

    async def _headline(self, query: LeaderboardQuery) -> str:
        """That of the newest run. A log may have any metric: it chooses only where nothing else is there."""
        newest = (
            await self.leaderboard.closed_run(query.like_run_id)
            if query.like_run_id
            else await self.leaderboard.newest_run(query.benchmark)
        )
        if newest is None:
            return SCORE
        if newest.result.is_imported and not query.like_run_id:
            found = await self.leaderboard.candidates(query.benchmark, SCORE, None, is_best=False)
            own = [one.run for one in found if not one.run.result.is_imported]
            newest = max(own, key=lambda run: run.closed_at, default=newest)
        return newest.result.headline

    async def _entries(
        self, ranked: Sequence[Candidate], max_entries: int
    ) -> tuple[list[LeaderboardEntry], int]:
        """Entries with ranks, ties and trends from the comparisons that are stored, and the number of pairs
        that are still being compared.

        A rank is that among all candidates, however few of them are listed.
        """
        if not ranked:
            return [], 0
        metric = ranked[0].metric
        p_values = await self.differences.p_values([one.run.run_id for one in ranked], metric)
        differing = distinguishable(len(ranked), p_values)
        given, listed = ranks(len(ranked), differing), ranked[:max_entries]
        tied, unknown = ties(len(listed), p_values, differing), untested(len(listed), p_values)
        pending = await self._pending(ranked, given[:max_entries], p_values)
        moved = await self._moved(listed, metric)
        entries = [
            replace(
                entry_of(one),
                rank=given[position],
                tied_with=tuple(listed[other].run.model for other in tied[position]),
                not_compared_with=tuple(listed[other].run.model for other in unknown[position]),
                trend=trend_of(one.previous_run_id, moved.get((one.run.run_id, one.previous_run_id))),
            )
            for position, one in enumerate(listed)
        ]
        return entries, pending

    async def _pending(self, ranked: Sequence[Candidate], given: list[int], p_values: PValues) -> int:
        """How many pairs of those with the given ranks have no comparison, and are compared soon.

        Comparing takes seconds to minutes for many large runs: a reading does not wait for it.
        """
        missing = uncompared(given, p_values)
        if not missing:
            return 0
        run_ids = [one.run.run_id for one in ranked]
        # All compared runs have a score, but not every metric of a leaderboard can be compared (pass@k).
        scores = await self.differences.p_values(run_ids, SCORE)
        pairs = [pair for pair in uncompared(given, scores) if pair not in p_values]
        return self.pending.add([(run_ids[first], run_ids[second]) for first, second in pairs])

    async def _moved(
        self, listed: Sequence[Candidate], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        """The difference of each run to the previous run of its model."""
        with_previous = [one for one in listed if one.previous_run_id]
        run_ids = [one.run.run_id for one in with_previous]
        previous = [one.previous_run_id for one in with_previous]
        return await self.differences.of_runs([*run_ids, *previous], metric) if run_ids else {}
