"""Counts equal rows, whatever happens to the recorders: duplicates, disorder, killed connections."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import astuple, replace

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.outcome import Answer, Failure, FailureClass, Outcome
from proctor.values.run import RunState
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.errors import DependencyUnavailable
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.outcomes.outcome import OutcomeBatch
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.run_plan import RunPlan
from services.results.summaries.ports import Stores
from services.results.summaries.summarize_run import SummarizeRun
from tests.fakes.eventually import eventually
from tests.fakes.results.memory_results import MemoryProgress
from tests.fakes.results.recorded_run import (
    answered,
    batch,
    choice_sample,
    failed,
    new_id,
    plan_of,
    scored,
)
from tests.fakes.results.stores import postgres_stores, record_outcomes_of
from tests.harness.servers import RunningServer, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = 1500
RECORDERS = 4
KILLS = 6

COUNTED_ROWS = """
    SELECT o.task_index, o.failure_class, count(*) AS recorded,
        count(*) FILTER (WHERE o.status = 'unparsed') AS unparsed,
        sum(o.prompt_tokens), sum(o.completion_tokens),
        sum(o.cached_tokens), sum(o.reasoning_tokens)
    FROM outcomes AS o JOIN run_records AS r USING (run_id)
    WHERE o.run_id = $1::uuid AND (o.status <> 'failed' OR o.epoch = r.epoch)
    GROUP BY o.task_index, o.failure_class ORDER BY 1, 2
"""
COUNTS = """
    SELECT task_index, failure_class, recorded, unparsed, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens
    FROM task_counts
    WHERE run_id = $1::uuid AND (recorded, prompt_tokens, completion_tokens) <> (0, 0, 0) ORDER BY 1, 2
"""
# Of both queries: the task, the class, and how many were recorded and unparsed.
RECORDED_COLUMNS = 4
TOKENS = """
    SELECT sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(reasoning_tokens)
    FROM outcomes WHERE run_id = $1::uuid
"""
SHARD_ROWS = """
    SELECT o.shard, count(*)::integer AS recorded
    FROM outcomes AS o JOIN run_records AS r USING (run_id, epoch)
    WHERE o.run_id = $1::uuid GROUP BY o.shard ORDER BY 1
"""
SHARD_COUNTS = "SELECT shard, recorded FROM shard_counts WHERE run_id = $1::uuid AND recorded <> 0 ORDER BY 1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres() -> AsyncIterator[RunningServer]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def recorders(postgres: RunningServer) -> AsyncIterator[list[tuple[Stores, RecordOutcomes]]]:
    """Each with connections of its own, as replicas have."""
    pools = [await connect_pool(postgres.address, schema=SCHEMA, max_size=2) for _ in range(RECORDERS)]
    sessions = [PostgresSession(pool, QUERIES) for pool in pools]
    made = [postgres_stores(s) for s in sessions]
    yield [(stores, record_outcomes_of(stores, MemoryProgress())) for stores in made]
    for pool in pools:
        pool.terminate()


async def open_run(stores: Stores) -> RunPlan:
    sample_set_id = new_id()
    await stores.sample_sets.stage(sample_set_id, [choice_sample(at, sample_set_id) for at in range(SAMPLES)])
    await stores.sample_sets.commit(sample_set_id, SAMPLES)
    return (await stores.records.open(plan_of([SAMPLES], [sample_set_id]), 1)).plan


def disorder(plans: Sequence[RunPlan], seed: int) -> list[list[OutcomeBatch]]:
    """What a recorder gets: every sample of every run, some failed at first, in its own order and cut."""
    chance = random.Random(seed)
    batches: list[OutcomeBatch] = []
    for plan in plans:
        outcomes = [outcome for sample in range(SAMPLES) for outcome in _dispatches(sample)]
        chance.shuffle(outcomes)
        while outcomes:
            size = chance.randint(1, 120)
            batches.append(batch(plan.run_id, outcomes[:size]))
            del outcomes[:size]
    chance.shuffle(batches)
    return [batches[start : start + 5] for start in range(0, len(batches), 5)]


def _dispatches(sample: int) -> list[Outcome]:
    if sample % 7 == 0:
        return with_tokens(failed(sample), failed(sample, attempt=2))
    if sample % 5 == 0:
        return with_tokens(failed(sample), answered(sample, attempt=2))
    return with_tokens(answered(sample), answered(sample, 1, attempt=2))


def with_tokens(*outcomes: Outcome) -> list[Outcome]:
    """No two alike, so that the sums tell which one was recorded."""
    return [
        replace(
            one, usage=TokenUsage(10 * one.sample + one.attempt, one.sample, one.attempt, 3 * one.attempt)
        )
        for one in outcomes
    ]


async def record_all(record: RecordOutcomes, work: list[list[OutcomeBatch]]) -> None:
    for batches in work:
        is_done = False
        while not is_done:
            try:
                await record.record(batches)
                is_done = True
            except DependencyUnavailable:
                is_done = False


async def test_counts_equal_rows_under_concurrent_duplicates_and_killed_connections(
    postgres: RunningServer, recorders: list[tuple[Stores, RecordOutcomes]]
) -> None:
    plans = [await open_run(recorders[0][0]) for _ in range(2)]
    observer = await asyncpg.connect(postgres.address, server_settings={"search_path": SCHEMA})
    async with asyncio.TaskGroup() as group:
        for seed, (_, record) in enumerate(recorders):
            group.create_task(record_all(record, disorder(plans, seed)))
        group.create_task(kill_connections(observer, plans))
    for plan in plans:
        await assert_counts_equal_rows(observer, plan)
        counts = (await recorders[0][0].records.all_counts(plan)).counts
        assert (counts.recorded, counts.failed) == (SAMPLES, len(range(0, SAMPLES, 7)))
        [tokens] = await observer.fetch(TOKENS, plan.run_id)
        assert astuple(counts.usage) == tuple(tokens)
    await observer.close()


async def kill_connections(observer: asyncpg.Connection, plans: Sequence[RunPlan]) -> None:
    """All connections of the recorders, again and again while rows keep coming."""
    run_ids = [plan.run_id for plan in plans]
    for step in range(1, KILLS + 1):
        wanted = step * SAMPLES * len(plans) * 0.8 / KILLS

        async def has_come(wanted: float = wanted) -> bool:
            count = await observer.fetchval("SELECT count(*) FROM outcomes WHERE run_id = ANY ($1)", run_ids)
            return bool(count >= wanted)

        await eventually(has_come, f"{wanted:g} rows", limit_seconds=60)
        await observer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'proctor-results' AND pid <> pg_backend_pid()"
        )


@pytest.mark.thorough
async def test_counts_equal_rows_when_epochs_change_under_way(
    postgres: RunningServer, recorders: list[tuple[Stores, RecordOutcomes]]
) -> None:
    stores = recorders[0][0]
    plan = await open_run(stores)
    observer = await asyncpg.connect(postgres.address, server_settings={"search_path": SCHEMA})
    async with asyncio.TaskGroup() as group:
        for seed, (_, record) in enumerate(recorders):
            group.create_task(record_all(record, disorder([plan], seed)))
        for epoch in (2, 3):
            await eventually(lambda: has_rows(observer, plan), "some rows are there", limit_seconds=60)
            await stores.records.freeze(plan, epoch - 1, RunState.COMPLETED, allow_partial=True)
            await stores.records.open(plan, epoch)
    await assert_counts_equal_rows(observer, plan, are_tokens_equal=False)
    await observer.close()


async def test_tokens_of_failures_stay_counted_when_the_run_is_retried(
    recorders: list[tuple[Stores, RecordOutcomes]],
) -> None:
    """Each attempt counts once, also where the retry is never answered."""
    stores, _ = recorders[0]
    plan = await open_run(stores)
    paid = TokenUsage(10, 2, 1, 1)

    async def record(epoch: int, *outcomes: Outcome) -> None:
        rows = [replace(scored(plan.run_id, replace(one, usage=paid)), epoch=epoch) for one in outcomes]
        await stores.outcomes.record(rows)
        await stores.outcomes.record(rows)

    await record(1, answered(0), failed(1), failed(2))
    await stores.records.freeze(plan, 1, RunState.FAILED, allow_partial=True)
    await stores.records.open(plan, 2)
    counts = (await stores.records.all_counts(plan)).counts
    assert (counts.recorded, counts.failed, counts.failures) == (1, 0, {})
    assert counts.usage == TokenUsage(30, 6, 3, 3)
    await record(2, answered(1))
    counts = (await stores.records.all_counts(plan)).counts
    assert (counts.recorded, counts.failed, counts.usage) == (2, 0, TokenUsage(40, 8, 4, 4))


async def has_rows(observer: asyncpg.Connection, plan: RunPlan) -> bool:
    query = "SELECT count(*) FROM outcomes WHERE run_id = $1::uuid"
    return bool(await observer.fetchval(query, plan.run_id) > SAMPLES / 10)


async def assert_counts_equal_rows(
    observer: asyncpg.Connection, plan: RunPlan, *, are_tokens_equal: bool = True
) -> None:
    """Tokens of failures of earlier epochs stay in the counts, and their rows are replaced."""
    columns = None if are_tokens_equal else RECORDED_COLUMNS
    for rows, counts in ((COUNTED_ROWS, COUNTS), (SHARD_ROWS, SHARD_COUNTS)):
        expected = [tuple(row)[:columns] for row in await observer.fetch(rows, plan.run_id)]
        found = [tuple(row)[:columns] for row in await observer.fetch(counts, plan.run_id)]
        assert [row for row in found if any(row[2:] or row[1:])] == expected if columns else found == expected


async def test_gpu_seconds_count_once_with_what_was_recorded(
    recorders: list[tuple[Stores, RecordOutcomes]],
) -> None:
    stores, _ = recorders[0]
    plan, other = await open_run(stores), await open_run(stores)

    async def record(*outcomes: Outcome) -> float:
        await stores.outcomes.record([scored(plan.run_id, one) for one in outcomes])
        return await stores.outcomes.gpu_seconds(plan.run_id)

    first, lost = replace(answered(0), gpu_seconds=1.5), replace(failed(1), gpu_seconds=0.25)
    assert await record(first, lost) == 1.75
    # A batch that comes again, and another answer to the same sample, add nothing.
    assert await record(first, lost) == 1.75
    assert await record(replace(first, attempt=2, gpu_seconds=8.0)) == 1.75
    # What is asked again takes GPUs again, and an answer from a provider takes none.
    assert await record(replace(answered(1, attempt=2), gpu_seconds=2.0), answered(2)) == 3.75
    assert await stores.outcomes.gpu_seconds(other.run_id) == 0
    summary = await SummarizeRun(stores, SystemClock()).summarize(await stores.records.get(plan.run_id))
    assert summary.gpu_seconds == 3.75


async def test_time_of_answering_goes_from_the_first_request_to_the_last_outcome(
    postgres: RunningServer, recorders: list[tuple[Stores, RecordOutcomes]]
) -> None:
    stores, _ = recorders[0]
    plan = await open_run(stores)
    assert await stores.outcomes.answering_seconds(plan.run_id) == 0
    taken = [replace(answered(n), timing=Timing(total_seconds=seconds)) for n, seconds in enumerate((8, 2))]
    await stores.outcomes.record([scored(plan.run_id, one) for one in taken])
    await stores.outcomes.record([scored(plan.run_id, failed(2))])
    when = "recorded_at = '2026-01-01'::timestamptz + make_interval(secs => 5 * sample)"
    observer = await asyncpg.connect(postgres.address, server_settings={"search_path": SCHEMA})
    await observer.execute(f"UPDATE outcomes SET {when} WHERE run_id = $1::uuid", plan.run_id)
    await observer.close()
    assert await stores.outcomes.answering_seconds(plan.run_id) == 18
    summary = await SummarizeRun(stores, SystemClock()).summarize(await stores.records.get(plan.run_id))
    assert summary.answering_seconds == 18


async def test_answer_that_could_not_be_scored_counts_as_the_last_attempt_of_its_retry(
    postgres: RunningServer, recorders: list[tuple[Stores, RecordOutcomes]]
) -> None:
    stores, _ = recorders[0]
    plan = await open_run(stores)

    async def record(epoch: int, outcome: Outcome) -> int:
        return await stores.outcomes.record([scored(plan.run_id, outcome, epoch)])

    [sent] = with_tokens(answered(0))
    unread = replace(sent, result=Failure(FailureClass.SCORING, "unreadable", Answer("so")))
    await record(1, unread)
    reopened = await stores.records.open(plan, 2)
    assert await stores.outcomes.missing(reopened, 0, range(1)) == [0]
    assert await record(2, replace(failed(0, FailureClass.TIMEOUT, attempt=2), shard=7)) == 1
    assert await stores.outcomes.missing(reopened, 0, range(1)) == []
    progress = await stores.records.all_counts(plan)
    assert (progress.counts.failures, progress.counts.usage, progress.shards) == (
        {"scoring": 1},
        unread.usage,
        {7: 1},
    )
    # No later failure takes its place, and another answer does, scored or not.
    assert await record(2, failed(0, attempt=3)) == 0
    await stores.records.open(plan, 3)
    assert await record(3, replace(unread, attempt=1)) == 1
    assert await record(3, answered(0)) == 1
    observer = await asyncpg.connect(postgres.address, server_settings={"search_path": SCHEMA})
    await assert_counts_equal_rows(observer, plan)
    await observer.close()
