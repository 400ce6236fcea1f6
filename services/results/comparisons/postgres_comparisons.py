"""What runs prove about each other, kept in Postgres."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import asyncpg

from services.common.postgres import PostgresSession
from services.results.comparisons.comparison import Difference
from services.results.comparisons.estimate import verdict_of
from services.results.comparisons.stored_difference import StoredDifference
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.standings.run_terms import terms_of
from services.results.summaries.group_figures import SCORE


class PostgresComparisons:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def of_runs(
        self, run_ids: Sequence[str], metric: str
    ) -> Mapping[tuple[str, str], StoredDifference]:
        rows = await self._session.fetch("read_comparisons", list(run_ids), metric)
        places = {run_id: place for place, run_id in enumerate(run_ids)}
        found = [_stored_difference(metric, row) for row in rows]
        in_order = [
            one if places[one.first_run_id] < places[one.second_run_id] else one.reversed() for one in found
        ]
        return {(one.first_run_id, one.second_run_id): one for one in in_order}

    async def p_values(self, run_ids: Sequence[str], metric: str) -> Mapping[tuple[int, int], float | None]:
        row = await self._session.fetchrow("read_p_values", list(run_ids), metric)
        assert row is not None
        pairs = zip(row["first_places"], row["second_places"], row["p_values"], strict=True)
        return {(min(first, second), max(first, second)): p_value for first, second, p_value in pairs}

    async def compared_with(self, run_id: str, others: Sequence[str]) -> Collection[str]:
        kept = await self.of_runs([run_id, *others], SCORE)
        return {other for other in others if (run_id, other) in kept}

    async def waiting(self, most: int) -> list[str]:
        return [row["run_id"] for row in await self._session.fetch("list_runs_to_compare", most)]

    async def previous_run(self, run: RunPlan) -> str | None:
        facts, terms = run.facts, terms_of(run).of_metric(SCORE)
        row = await self._session.fetchrow(
            "find_previous_run", run.run_id, facts.suite, facts.model, terms.text
        )
        return None if row is None else str(row["run_id"])

    async def keep(self, first: RunRecord, second: RunRecord, differences: Sequence[Difference]) -> None:
        runs = first.plan.run_id, second.plan.run_id, first.epoch, second.epoch
        columns = zip(*map(_row, differences), strict=True)
        # One of the two may have been deleted meanwhile.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.fetch("keep_comparison", *runs, *columns)

    async def mark_compared(self, run: RunRecord) -> None:
        await self._session.fetch("mark_compared", run.plan.run_id, run.epoch)


def _row(difference: Difference) -> tuple[object, ...]:
    """In the order of the columns of `keep_comparison`. The verdict is on this difference alone."""
    estimate = difference.estimate
    return (
        difference.task,
        difference.metric,
        estimate.difference,
        estimate.ci_low,
        estimate.ci_high,
        estimate.p_value,
        verdict_of(estimate, estimate.p_value),
        estimate.pairs,
        estimate.test,
    )


def _stored_difference(metric: str, row: asyncpg.Record) -> StoredDifference:
    return StoredDifference(
        row["first_run_id"],
        row["second_run_id"],
        metric,
        row["difference"],
        row["ci_low"],
        row["ci_high"],
        row["p_value"],
        row["pairs"],
        row["test"],
    )
