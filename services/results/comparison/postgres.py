"""Comparisons in Postgres: answers paired and counted there, and the stored differences of runs."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import asyncpg
import orjson

from services.common.postgres import PostgresSession
from services.results.comparison.answer_pairs import PairGroup, SampleAnswers
from services.results.comparison.compared_metrics import task_index, task_named
from services.results.comparison.comparison import Difference, StoredDifference
from services.results.comparison.pair_differences import PairsByMetric
from services.results.comparison.ports import FlipQuery, FoundFlip
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.scoring.score import ScoreValue
from services.results.statistics.metric_names import SCORE
from services.results.statistics.paired.difference_estimate import verdict_of

# Right and wrong are two texts, with rollouts some hundreds; graded scores push each other out.
KNOWN_TEXTS = 10_000


class PostgresPairs:
    """Pairs the answers of two runs by their samples."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def pairs(
        self, first: RunPlan, second: RunPlan, metrics: Mapping[str, Sequence[str]]
    ) -> PairsByMetric:
        """Scores of both runs in the metrics of some tasks, which both have."""
        tasks = list(metrics)
        wanted = [(index, metric) for index, task in enumerate(tasks, start=1) for metric in metrics[task]]
        rows = await self._fetch(
            "read_pairs",
            first_run_id=first.run_id,
            second_run_id=second.run_id,
            **_task_columns(first, second, tasks),
            task_numbers=[index for index, _ in wanted],
            metrics=[metric for _, metric in wanted],
        )
        # Seconds for large runs, in which the service goes on.
        named = [(tasks[index - 1], metric) for index, metric in wanted]
        return await asyncio.to_thread(_grouped, rows, named)

    async def flips(self, query: FlipQuery) -> list[FoundFlip]:
        """Samples that both answered and that may be scored differently, in the order of the first run."""
        first, second = query.tasks
        rows = await self._fetch(
            "list_flips",
            first_run_id=query.run_ids[0],
            second_run_id=query.run_ids[1],
            first_start=first.first_sample,
            second_start=second.first_sample,
            first_end=first.end_sample,
            second_end=second.end_sample,
            first_set_id=first.sample_set_id,
            second_set_id=second.sample_set_id,
            metric=query.metric,
            after_sample=query.after_sample,
            limit=query.limit,
        )
        return [_found_flip(row) for row in rows]

    async def _fetch(self, query: str, /, **arguments: object) -> list[asyncpg.Record]:
        async def once() -> list[asyncpg.Record]:
            async with self._session.transaction() as transaction:
                # Settings of this transaction: the pairing of large runs needs other plans.
                await transaction.execute("join_by_hash")
                return await transaction.fetch(query, **arguments)

        return await self._session.repeat(once)


def _task_columns(first: RunPlan, second: RunPlan, tasks: Sequence[str]) -> Mapping[str, list[object]]:
    """Parameters of `read_pairs`."""
    planned = [(task_named(first, task), task_named(second, task)) for task in tasks]
    return {
        "first_indexes": [task_index(first, task) for task in tasks],
        "second_indexes": [task_index(second, task) for task in tasks],
        "first_starts": [one.first_sample for one, _ in planned],
        "second_starts": [other.first_sample for _, other in planned],
        "first_set_ids": [one.sample_set_id for one, _ in planned],
        "second_set_ids": [other.sample_set_id for _, other in planned],
    }


def _grouped(rows: Sequence[asyncpg.Record], wanted: Sequence[tuple[str, str]]) -> PairsByMetric:
    found: dict[tuple[str, str], list[PairGroup]] = defaultdict(list)
    for row in rows:
        found[wanted[row["metric"] - 1]].append(_pair_group(row))
    # Sums of floating numbers come out the same only in the same order.
    return {key: sorted(groups, key=_order) for key, groups in found.items()}


def _pair_group(row: asyncpg.Record) -> PairGroup:
    first = SampleAnswers(_scores(row["first_scores"]), row["first_unparsed"], row["first_failed"])
    second = SampleAnswers(_scores(row["second_scores"]), row["second_unparsed"], row["second_failed"])
    return PairGroup(first, second, row["pairs"], row["cluster"] or "")


def _order(group: PairGroup) -> tuple[object, ...]:
    first, second = group.first, group.second
    return group.cluster, first.is_failed, second.is_failed, first.scores, second.scores, group.count


def _found_flip(row: asyncpg.Record) -> FoundFlip:
    first, second = SampleAnswers(_scores(row["first_scores"])), SampleAnswers(_scores(row["second_scores"]))
    return FoundFlip(row["position"], first, second, (row["first_prediction"], row["second_prediction"]))


@lru_cache(maxsize=KNOWN_TEXTS)
def _scores(text: str | None) -> tuple[ScoreValue, ...]:
    """Few texts come up over and over."""
    if text is None:
        return ()
    return tuple(tuple(score) if isinstance(score, list) else score for score in orjson.loads(f"[{text}]"))


class PostgresComparisons:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def of_runs(
        self, run_ids: Sequence[str], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        rows = await self._session.fetch("list_comparisons", run_ids=list(run_ids), metric=metric)
        indexes = {run_id: index for index, run_id in enumerate(run_ids)}
        found = [StoredDifference(**row) for row in rows]
        in_order = [
            one if indexes[one.first_run_id] < indexes[one.second_run_id] else one.reversed() for one in found
        ]
        return {(one.first_run_id, one.second_run_id): one for one in in_order}

    async def p_values(self, run_ids: Sequence[str], metric: str) -> Mapping[tuple[int, int], float | None]:
        row = await self._session.fetchrow("read_p_values", run_ids=list(run_ids), metric=metric)
        assert row is not None
        pairs = zip(row["first_indexes"], row["second_indexes"], row["p_values"], strict=True)
        return {(min(first, second), max(first, second)): p_value for first, second, p_value in pairs}

    async def compared_with(self, run_id: str, others: Sequence[str]) -> Collection[str]:
        kept = await self.of_runs([run_id, *others], SCORE)
        return {other for other in others if (run_id, other) in kept}

    async def store(self, first: RunRecord, second: RunRecord, differences: Sequence[Difference]) -> None:
        estimates = [one.estimate for one in differences]
        # One of the two may have been deleted meanwhile.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.fetch(
                "store_comparison",
                first_run_id=first.plan.run_id,
                second_run_id=second.plan.run_id,
                first_epoch=first.epoch,
                second_epoch=second.epoch,
                tasks=[one.task for one in differences],
                metrics=[one.metric for one in differences],
                differences=[one.difference for one in estimates],
                ci_lows=[one.ci_low for one in estimates],
                ci_highs=[one.ci_high for one in estimates],
                p_values=[one.p_value for one in estimates],
                # Each on its difference alone.
                verdicts=[verdict_of(one, one.p_value) for one in estimates],
                pairs=[one.pairs for one in estimates],
                tests=[one.test for one in estimates],
            )
