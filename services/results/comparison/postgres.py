"""Comparisons in Postgres: answers paired and counted there, and the stored differences of runs.

Answers are paired in parts, each in one statement over a bounded number of outcomes of each run. So runs of
any size are paired within the time that a statement has, and archived ones within the rows that one is sent.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import asyncpg
import orjson

from services.common.postgres import PostgresSession
from services.results.comparison.answer_pairs import PairGroup, SampleAnswers
from services.results.comparison.compared_metrics import task_index, task_named
from services.results.comparison.comparison import Difference, StoredDifference
from services.results.comparison.pair_differences import PairsByMetric
from services.results.comparison.ports import FlipQuery, FoundFlip
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.scoring.score import ScoreValue
from services.results.statistics.metric_names import SCORE
from services.results.statistics.paired.difference_estimate import verdict_of

# A part of as many outcomes takes about a second, and no more are sent of an archived run.
PART_OUTCOMES = 200_000
# Positions are integers of four bytes.
_ALL_POSITIONS = range(2**31 - 1)
# A task as each of the runs has it.
_Planned: TypeAlias = tuple[PlannedTask, PlannedTask]
# Right and wrong are two texts, with rollouts some hundreds; graded scores push each other out.
KNOWN_TEXTS = 10_000
# Pairs by task and metric, and by the other columns of a row of `list_pairs`.
_Tally: TypeAlias = Counter[tuple[tuple[str, str], tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class PairedPart:
    """Tasks, and the samples of each run that are paired.

    `positions`: those of the sample set of a task that is cut; all of tasks that are whole.
    """

    tasks: Sequence[str]
    first: range
    second: range
    positions: range = _ALL_POSITIONS


class PostgresPairs:
    """Pairs the answers of two runs by their samples, `part_outcomes` of each run in a statement."""

    def __init__(self, session: PostgresSession, part_outcomes: int = PART_OUTCOMES) -> None:
        self._session = session
        self._part_outcomes = part_outcomes

    async def pairs(
        self, first: RunPlan, second: RunPlan, metrics: Mapping[str, Sequence[str]]
    ) -> PairsByMetric:
        """Scores of both runs in the metrics of some tasks, which both have."""

        async def once() -> _Tally:
            tally: _Tally = Counter()
            # One snapshot, so that no part sees what another one was scored by before.
            async with self._session.transaction(isolation="repeatable_read") as transaction:
                await transaction.execute("join_by_hash")
                for part in parts_of(first, second, list(metrics), self._part_outcomes):
                    named = [(task, metric) for task in part.tasks for metric in metrics[task]]
                    rows = await transaction.fetch(
                        "list_pairs",
                        first_run_id=first.run_id,
                        second_run_id=second.run_id,
                        **_part_columns(first, second, part),
                        task_numbers=[part.tasks.index(task) + 1 for task, _ in named],
                        metrics=[metric for _, metric in named],
                    )
                    # Seconds for large runs, in which the service goes on.
                    await asyncio.to_thread(_add, tally, rows, named)
            return tally

        return await asyncio.to_thread(_grouped, await self._session.repeat(once))

    async def flips(self, query: FlipQuery) -> list[FoundFlip]:
        """Samples that both answered and that may be scored differently, in the order of the first run."""

        async def once() -> list[FoundFlip]:
            found: list[FoundFlip] = []
            async with self._session.transaction(isolation="repeatable_read") as transaction:
                await transaction.execute("join_by_hash")
                for first, second in flip_ranges(query, self._part_outcomes):
                    rows = await transaction.fetch(
                        "list_flips",
                        first_run_id=query.run_ids[0],
                        second_run_id=query.run_ids[1],
                        first_start=query.tasks[0].first_sample,
                        second_start=query.tasks[1].first_sample,
                        after_sample=first.start - 1,
                        first_end=first.stop,
                        second_from=second.start,
                        second_end=second.stop,
                        first_set_id=query.tasks[0].sample_set_id,
                        second_set_id=query.tasks[1].sample_set_id,
                        metric=query.metric,
                        limit=query.limit - len(found),
                    )
                    found += [_found_flip(row) for row in rows]
                    if len(found) >= query.limit:
                        break
            return found

        return await self._session.repeat(once)


def parts_of(first: RunPlan, second: RunPlan, tasks: Sequence[str], most: int) -> list[PairedPart]:
    """Small tasks together, and a large one in pieces of positions; at most `most` outcomes of a run in each.

    The samples of unlike sets are paired by their digests, so such a task is never cut.
    """
    size = max(1, most // max(first.rollouts, second.rollouts))
    parts: list[PairedPart] = []
    together: dict[str, _Planned] = {}
    for task in tasks:
        one, other = planned = task_named(first, task), task_named(second, task)
        if one.sample_set_id == other.sample_set_id and one.sample_count > size:
            parts += [_piece(task, planned, positions) for positions in pieces(one.sample_count, size)]
            continue
        if (
            together
            and sum(earlier.sample_count for earlier, _ in together.values()) + one.sample_count > size
        ):
            parts.append(_joined(together))
            together = {}
        together[task] = planned
    return [*parts, _joined(together)] if together else parts


def flip_ranges(query: FlipQuery, most: int) -> Iterator[tuple[range, range]]:
    """Samples of both runs that are paired, piece by piece, in the order of the first run."""
    one, other = query.tasks
    start = query.after_sample + 1
    if one.sample_set_id != other.sample_set_id:
        yield range(start, one.end_sample), range(other.first_sample, other.end_sample)
        return
    size = max(1, most // query.rollouts)
    for positions in pieces(one.sample_count, size, start - one.first_sample):
        yield shifted(positions, one.first_sample), shifted(positions, other.first_sample)


def pieces(end: int, size: int, start: int = 0) -> Iterator[range]:
    """Numbers from `start` up to `end`, `size` at a time."""
    return (range(low, min(low + size, end)) for low in range(start, end, size))


def shifted(positions: range, first_sample: int) -> range:
    """The samples of a run at some positions of a task's sample set."""
    return range(first_sample + positions.start, first_sample + positions.stop)


def _piece(task: str, planned: _Planned, positions: range) -> PairedPart:
    first, second = (shifted(positions, one.first_sample) for one in planned)
    return PairedPart([task], first, second, positions)


def _joined(planned: Mapping[str, _Planned]) -> PairedPart:
    first, second = (
        range(min(task.first_sample for task in run), max(task.end_sample for task in run))
        for run in zip(*planned.values(), strict=True)
    )
    return PairedPart(list(planned), first, second)


def _part_columns(first: RunPlan, second: RunPlan, part: PairedPart) -> Mapping[str, object]:
    """Parameters of `list_pairs`."""
    planned = [(task_named(first, task), task_named(second, task)) for task in part.tasks]
    return {
        "first_indexes": [task_index(first, task) for task in part.tasks],
        "second_indexes": [task_index(second, task) for task in part.tasks],
        "first_starts": [one.first_sample for one, _ in planned],
        "second_starts": [other.first_sample for _, other in planned],
        "first_set_ids": [one.sample_set_id for one, _ in planned],
        "second_set_ids": [other.sample_set_id for _, other in planned],
        "first_from": part.first.start,
        "first_to": part.first.stop,
        "second_from": part.second.start,
        "second_to": part.second.stop,
        "position_from": part.positions.start,
        "position_to": part.positions.stop,
    }


def _add(tally: _Tally, rows: Sequence[asyncpg.Record], named: Sequence[tuple[str, str]]) -> None:
    for _, metric, *like, pairs in rows:
        tally[named[metric - 1], tuple(like)] += pairs


def _grouped(tally: _Tally) -> PairsByMetric:
    found: dict[tuple[str, str], list[PairGroup]] = defaultdict(list)
    for (named, like), pairs in tally.items():
        found[named].append(_pair_group(like, pairs))
    # Sums of floating numbers come out the same only in the same order.
    return {key: sorted(groups, key=_order) for key, groups in found.items()}


def _pair_group(like: tuple[Any, ...], pairs: int) -> PairGroup:
    cluster, *scores, first_unparsed, second_unparsed, first_failed, second_failed = like
    first, second = map(_scores, scores)
    return PairGroup(
        SampleAnswers(first, first_unparsed, first_failed),
        SampleAnswers(second, second_unparsed, second_failed),
        pairs,
        cluster or "",
    )


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
