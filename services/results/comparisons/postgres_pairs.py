"""Pairs of answers in Postgres: paired, joined and counted there, so that only what differs comes over."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

import asyncpg
import orjson

from services.common.postgres import PostgresSession
from services.results.comparisons.answer_pairs import PairGroup, SampleAnswers
from services.results.comparisons.flip import FlipQuery, FoundFlip
from services.results.comparisons.pair_differences import PairsByMetric
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.scoring.answer import ScoreValue

KNOWN_TEXTS = 10_000


class PostgresPairs:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def pairs(
        self, first: RunPlan, second: RunPlan, metrics: Mapping[str, Sequence[str]]
    ) -> PairsByMetric:
        tasks = list(metrics)
        wanted = [(place, metric) for place, task in enumerate(tasks, start=1) for metric in metrics[task]]
        rows = await self._fetch(
            "read_pairs",
            first.run_id,
            second.run_id,
            *_task_columns(first, second, tasks),
            [place for place, _ in wanted],
            [metric for _, metric in wanted],
        )
        found: dict[tuple[str, str], list[PairGroup]] = defaultdict(list)
        for row in rows:
            place, metric = wanted[row["metric"] - 1]
            found[tasks[place - 1], metric].append(_pair_group(row))
        # Sums of floating numbers come out the same only in the same order.
        return {key: sorted(groups, key=_order) for key, groups in found.items()}

    async def flips(self, query: FlipQuery) -> list[FoundFlip]:
        first, second = query.tasks
        rows = await self._fetch(
            "list_flips",
            *query.run_ids,
            first.first_sample,
            second.first_sample,
            first.end_sample,
            second.end_sample,
            first.sample_set_id,
            second.sample_set_id,
            query.metric,
            query.after_sample,
            query.most,
        )
        return [_found_flip(row) for row in rows]

    async def latest_runs(self, suite: str, models: Sequence[str]) -> Mapping[str, str]:
        rows = await self._session.fetch("find_latest_runs", suite, list(models))
        return {row["model"]: row["run_id"] for row in rows}

    async def _fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        async def once() -> list[asyncpg.Record]:
            async with self._session.transaction() as transaction:
                await transaction.execute("join_by_hash")
                return await transaction.fetch(query, *arguments)

        return await self._session.repeat(once)


def _task_columns(first: RunPlan, second: RunPlan, tasks: Sequence[str]) -> list[list[object]]:
    """In the order of `read_pairs`."""
    places = [(_place(first, task), _place(second, task)) for task in tasks]
    planned: list[tuple[PlannedTask, PlannedTask]] = [
        (first.tasks[one], second.tasks[other]) for one, other in places
    ]
    return [
        [one for one, _ in places],
        [other for _, other in places],
        [one.first_sample for one, _ in planned],
        [other.first_sample for _, other in planned],
        [one.sample_set_id for one, _ in planned],
        [other.sample_set_id for _, other in planned],
    ]


def _place(plan: RunPlan, task: str) -> int:
    place = plan.task_index_named(task)
    assert place is not None
    return place


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
