"""The times of a run's answers are spread, in Postgres, as vLLM's own benchmark spreads them with numpy."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime

import asyncpg
import numpy as np
import pytest
import pytest_asyncio

from proctor.values.outcome import Outcome
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.outcomes.postgres import PostgresOutcomes
from services.results.outcomes.timing_summary import BUCKET_WIDTH, TimingHistograms, TimingSummary
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.postgres import PostgresRunRecords
from services.results.runs.run_plan import RunPlan
from services.results.samples.postgres import PostgresSampleSets
from services.results.summaries.postgres import SUMMARY
from services.results.summaries.run_summary import RunSummary
from tests.fakes.results.recorded_run import (
    answered,
    choice_sample,
    failed,
    new_id,
    plan_of,
    scored,
    timing_summary,
)
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = 500
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as opened:
            yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def plan(pool: asyncpg.Pool) -> RunPlan:
    session, sample_set_id = PostgresSession(pool, QUERIES), new_id()
    sets = PostgresSampleSets(session)
    await sets.stage(sample_set_id, [choice_sample(at, sample_set_id) for at in range(SAMPLES)])
    await sets.commit(sample_set_id, SAMPLES)
    return (await PostgresRunRecords(session).open(plan_of([SAMPLES], [sample_set_id]), 1)).plan


def random_answers(count: int, seed: int) -> list[Outcome]:
    """Some tell neither queue nor first token, some no token at all; none has fewer than its first."""
    draw = np.random.default_rng(seed)
    total = draw.lognormal(0, 1, count)
    first = total * draw.uniform(0, 1, count)
    tokens = draw.integers(0, 200, count)
    tells = draw.uniform(0, 1, count) < 0.7
    return [
        replace(
            answered(at),
            usage=TokenUsage(7, int(tokens[at])),
            timing=Timing(
                float(total[at]),
                float(first[at]) / 2 if tells[at] else None,
                float(first[at]) if tells[at] else None,
                float(total[at] - first[at]) / int(tokens[at] - 1) if tells[at] and tokens[at] > 1 else None,
            ),
        )
        for at in range(count)
    ]


async def spread(pool: asyncpg.Pool, plan: RunPlan, outcomes: Sequence[Outcome]) -> TimingSummary:
    store = PostgresOutcomes(PostgresSession(pool, QUERIES), SystemClock())
    if outcomes:
        await store.record([scored(plan.run_id, outcome) for outcome in outcomes])
    return await store.timing(plan.run_id)


def assert_equal(ours: TimingSummary, theirs: TimingSummary) -> None:
    for field in fields(TimingSummary):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        assert (mine is None) == (other is None), field.name
        if mine is not None:
            assert astuple(mine) == pytest.approx(astuple(other), rel=1e-9, abs=1e-12), field.name


@pytest.mark.parametrize(("count", "seed"), [(1, 1), (2, 2), (19, 3), (SAMPLES - 1, 4)])
async def test_percentiles_of_postgres_are_those_of_numpy(
    pool: asyncpg.Pool, plan: RunPlan, count: int, seed: int
) -> None:
    answers = random_answers(count, seed)
    assert_equal(await spread(pool, plan, [*answers, failed(count)]), timing_summary(answers))


async def test_percentiles_of_a_histogram_are_within_a_thousandth(pool: asyncpg.Pool, plan: RunPlan) -> None:
    answers = [
        replace(one, timing=replace(one.timing, queue_seconds=0.0)) for one in random_answers(SAMPLES, 7)
    ]
    exact = await spread(pool, plan, answers)
    histograms, store = TimingHistograms(), PostgresOutcomes(PostgresSession(pool, QUERIES), SystemClock())
    for window in (range(123), range(123, SAMPLES)):
        async for rows in store.time_buckets(plan.run_id, window, BUCKET_WIDTH):
            histograms.add(rows)
    found = histograms.summary()
    for field in fields(TimingSummary):
        mine, other = getattr(found, field.name), getattr(exact, field.name)
        assert astuple(mine) == pytest.approx(astuple(other), rel=0.001), field.name
    assert TimingHistograms().summary() == TimingSummary()


async def test_a_time_that_no_answer_has_is_undefined(pool: asyncpg.Pool, plan: RunPlan) -> None:
    assert await spread(pool, plan, []) == TimingSummary()
    silent = replace(answered(0), usage=TokenUsage(7, 0), timing=Timing(0.5))
    reported = await spread(pool, plan, [silent, failed(1)])
    assert reported.total is not None
    assert reported == TimingSummary(total=reported.total)
    assert reported.mean == Timing(0.5)


async def test_answers_of_earlier_runs_took_no_time(pool: asyncpg.Pool, plan: RunPlan) -> None:
    answers = random_answers(40, 5)
    await spread(pool, plan, answers)
    await pool.execute(
        "UPDATE outcomes SET is_reused = true, total_seconds = 0 WHERE run_id = $1::uuid AND sample >= 20",
        plan.run_id,
    )
    assert_equal(await spread(pool, plan, []), timing_summary(answers[:20]))


async def test_summary_kept_before_there_were_percentiles_still_reads() -> None:
    timing = timing_summary(random_answers(9, 6))
    summary = RunSummary(
        new_id(),
        1,
        is_partial=False,
        tasks=(),
        total=9,
        computed_at=NOON,
        mean_timing=timing.mean,
        timing=timing,
    )
    assert SUMMARY.validate_json(SUMMARY.dump_json(summary)) == summary
    kept = json.loads(SUMMARY.dump_json(summary))
    del kept["timing"], kept["mean_timing"]["between_tokens_seconds"]
    assert SUMMARY.validate_json(json.dumps(kept)).timing == TimingSummary()
