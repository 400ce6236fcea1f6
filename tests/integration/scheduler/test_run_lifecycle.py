"""How long runs are there: their windows, the data sets they hold, their deletion, their place in lists."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.run import RunId, RunKind, RunState
from services.common.clock import SystemClock
from services.common.errors import RunNotFound
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.errors import RunNotClosed, RunStillActive
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.run import CLOSING, Run, RunError, RunFinish
from services.scheduler.runs.reads.run_list import RunFilter
from services.scheduler.suites.errors import SuiteInUse
from services.scheduler.suites.postgres import PostgresUserSuites
from services.scheduler.uploads.dataset import DatasetId
from services.scheduler.uploads.errors import DatasetInUse, DatasetNotFound
from services.scheduler.uploads.postgres import PostgresDatasets
from tests.fakes.callers import by
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import HOUR, Stores, add, admit, empty_stores, new_run, stores_in_memory
from tests.fakes.scheduler.surroundings import START
from tests.fakes.scheduler.upload_stores import datasets_in, storage_in
from tests.fakes.scheduler_rules import queue_limits

pytestmark = pytest.mark.asyncio(loop_scope="module")

DATASET, OTHER = DatasetId(f"ds_{1:032x}"), DatasetId(f"ds_{2:032x}")
DAY_SECONDS = 24 * 3600


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(params=["memory", "postgres"], loop_scope="module")
async def stores(request: pytest.FixtureRequest, pool: asyncpg.Pool) -> Stores:
    return stores_in_memory() if request.param == "memory" else await in_postgres(pool)


@pytest_asyncio.fixture(loop_scope="module")
async def datasets(pool: asyncpg.Pool) -> PostgresDatasets:
    await in_postgres(pool)
    return datasets_in(PostgresSession(pool, QUERIES))


async def in_postgres(pool: asyncpg.Pool) -> Stores:
    """Nothing but two data sets."""
    stores = await empty_stores(pool)
    for dataset_id in (DATASET, OTHER):
        await pool.execute(
            """
            INSERT INTO dataset_contents
            VALUES ($1, 'jsonl', 'datasets/' || $1, 1, 1, 0, '{}', '', 1) ON CONFLICT DO NOTHING
            """,
            dataset_id,
        )
        await pool.execute(
            """
            INSERT INTO datasets (dataset_id, name, username, uploaded_at, digest, format)
            VALUES ($1, 'one.jsonl', 'local', now(), $1, 'jsonl') ON CONFLICT DO NOTHING
            """,
            dataset_id,
        )
    return stores


def dataset_run(age: int = 0, dataset_id: str = DATASET, window_seconds: int | None = None) -> Run:
    run = new_run(age, suite="", dataset_id=dataset_id, completion_window_seconds=window_seconds)
    expires_at = run.created_at + timedelta(seconds=window_seconds) if window_seconds else None
    return replace(run, dataset_name="one.jsonl", expires_at=expires_at)


async def expired(stores: Stores, now: datetime) -> list[RunId]:
    return [run.run_id for run in await stores.led.expired(now)]


async def ended(stores: Stores, run: Run) -> Run:
    """Cancelled and closed."""
    token = await stores.begin_term()
    await stores.runs.cancel(run.run_id, by(START + HOUR))
    await stores.led.mark_closed(token, run, None)
    return await stores.runs.get(run.run_id)


async def test_run_over_a_data_set_comes_back_as_it_was_stored(stores: Stores) -> None:
    run = await add(stores, dataset_run(window_seconds=DAY_SECONDS))
    assert await stores.runs.get(run.run_id) == run


async def test_window_closes_over_what_waits_and_what_is_paused(stores: Stores) -> None:
    waiting, paused, later, endless = [
        await add(stores, dataset_run(age, window_seconds=seconds))
        for age, seconds in enumerate((60, 60, DAY_SECONDS, None))
    ]
    await stores.runs.pause(paused.run_id, by(START))
    assert await expired(stores, START + timedelta(seconds=59)) == []
    assert await expired(stores, START + HOUR) == [waiting.run_id, paused.run_id]
    token = await stores.begin_term()
    finish = RunFinish(RunState.FAILED, START + HOUR, RunError("DEADLINE_REACHED", "The window closed."))
    for run in (waiting, paused):
        assert await stores.led.finish(token, run, finish)
    assert await expired(stores, START + HOUR) == []
    assert {later.run_id, endless.run_id} == set(await admit(stores, token))


async def test_run_with_a_window_may_run_until_it_closes(stores: Stores) -> None:
    windowed = await add(stores, dataset_run(window_seconds=DAY_SECONDS))
    other = await add(stores, dataset_run(1))
    await admit(stores, await stores.begin_term())
    assert (await stores.runs.get(windowed.run_id)).deadline == windowed.expires_at
    assert (await stores.runs.get(other.run_id)).deadline == START + HOUR + timedelta(hours=3)
    assert await expired(stores, START + timedelta(days=9)) == []


async def test_retry_opens_a_new_window(stores: Stores) -> None:
    windowed = await ended(stores, await add(stores, dataset_run(window_seconds=DAY_SECONDS)))
    other = await ended(stores, await add(stores, dataset_run(1)))
    now = START + timedelta(days=5)
    retried = [await stores.runs.requeue(run.run_id, by(now)) for run in (windowed, other)]
    assert [run and run.expires_at for run in retried] == [now + timedelta(days=1), None]


async def test_lists_have_kinds_and_data_sets(stores: Stores) -> None:
    suite, one, two = [
        await add(stores, run) for run in (new_run(), dataset_run(1), dataset_run(2, dataset_id=OTHER))
    ]

    async def listed(**wanted: object) -> tuple[list[RunId], int]:
        page = await stores.lists.page(RunFilter(**wanted), 10, None)  # type: ignore[arg-type]  # names are checked
        return [run.run_id for run in page.runs], page.total

    assert await listed(kind=RunKind.DATASET) == ([two.run_id, one.run_id], 2)
    assert await listed(kind=RunKind.SUITE) == ([suite.run_id], 1)
    assert await listed(dataset_id=OTHER) == ([two.run_id], 1)
    assert await listed(dataset_id=OTHER, kind=RunKind.SUITE) == ([], 0)
    assert await listed(benchmark=DATASET) == ([one.run_id], 1)


async def test_lists_have_the_runs_of_the_last_days(stores: Stores) -> None:
    now = SystemClock().now()
    newer, older = [
        await add(stores, replace(new_run(), created_at=now - timedelta(days=days))) for days in (1, 3)
    ]
    for days, listed in ((2, [newer]), (4, [newer, older]), (0, [newer, older])):
        page = await stores.lists.page(RunFilter(days=days), 10, None)
        assert [run.run_id for run in page.runs] == [run.run_id for run in listed]
        assert page.total == len(listed)


async def test_only_a_closed_run_is_deleted(stores: Stores) -> None:
    run = await add(stores, new_run())
    with pytest.raises(RunStillActive, match=r"is pending, so .* Cancel it first"):
        await stores.deleted.delete(run.run_id, by(START))
    await stores.runs.cancel(run.run_id, by(START))
    with pytest.raises(RunNotClosed, match=r"is cancelled and not closed, so .* Wait until it is closed"):
        await stores.deleted.delete(run.run_id, by(START))


async def test_a_run_whose_figures_are_computed_can_be_cancelled_to_delete_it(stores: Stores) -> None:
    run = await add(stores, new_run())
    token = await stores.begin_term()
    await admit(stores, token)
    assert await stores.led.set_phase(token, run, CLOSING, is_closing=True)
    with pytest.raises(RunStillActive, match=r"is closing, so .* Cancel it first"):
        await stores.deleted.delete(run.run_id, by(START))
    await stores.runs.cancel(run.run_id, by(START))
    cancelled = await stores.runs.get(run.run_id)
    await stores.led.mark_closed(token, cancelled, None)
    await stores.deleted.delete(run.run_id, by(START))


async def test_deleted_run_is_gone_and_kept_in_mind_for_results(stores: Stores) -> None:
    run = await ended(stores, await add(stores, new_run()))
    await stores.deleted.delete(run.run_id, by(START))
    with pytest.raises(RunNotFound):
        await stores.runs.get(run.run_id)
    with pytest.raises(RunNotFound):
        await stores.deleted.delete(run.run_id, by(START + HOUR))
    assert await stores.deleted.deleted(START) == []
    assert await stores.deleted.deleted(START + HOUR) == [run.run_id]
    await stores.deleted.delete_deletion(run.run_id)
    assert await stores.deleted.deleted(START + HOUR) == []


async def test_deletion_whose_answer_was_lost_can_be_repeated_by_the_same_call(pool: asyncpg.Pool) -> None:
    stores = await in_postgres(pool)
    run = await ended(stores, await add(stores, new_run()))
    await stores.deleted.delete(run.run_id, by(START))
    await stores.deleted.delete(run.run_id, by(START))


async def test_suite_of_a_deleted_run_can_be_deleted(pool: asyncpg.Pool) -> None:
    stores = await in_postgres(pool)
    await pool.execute(
        """
        INSERT INTO user_suites (suite) VALUES ('mine');
        INSERT INTO user_suite_versions VALUES ('mine', 1, 'd', '', 'mine.yaml', 'local', now());
        """
    )
    suites = PostgresUserSuites(
        PostgresSession(pool, QUERIES), storage_in(PostgresSession(pool, QUERIES)).check_suite
    )
    run = await ended(stores, await add(stores, replace(new_run(suite="mine"), suite_version=1)))
    with pytest.raises(SuiteInUse):
        await suites.delete("mine", 1, by())
    await stores.deleted.delete(run.run_id, by(START))
    assert await suites.delete("mine", 1, by())


async def test_data_set_stays_while_a_run_over_it_goes_on(
    pool: asyncpg.Pool, datasets: PostgresDatasets
) -> None:
    stores = await in_postgres(pool)
    run = await add(stores, dataset_run())
    with pytest.raises(DatasetInUse, match=f"Run {run.run_id} uses the data set {DATASET}, so it stays"):
        await datasets.delete(DATASET, by())
    await stores.runs.pause(run.run_id, by(START))
    with pytest.raises(DatasetInUse):
        await datasets.delete(DATASET, by())
    await ended(stores, run)
    await datasets.delete(DATASET, by())
    with pytest.raises(DatasetNotFound):
        await datasets.get(DATASET)


async def test_data_set_is_not_deleted_under_a_run_that_is_just_being_added(
    pool: asyncpg.Pool, datasets: PostgresDatasets
) -> None:
    sessions = PostgresSession(pool, QUERIES)
    runs = PostgresRuns(sessions, PostgresLimits(sessions, queue_limits()))
    run = dataset_run(dataset_id=OTHER)
    async with asyncio.TaskGroup() as group, pool.acquire() as connection, connection.transaction():
        await runs.add_in(PostgresTransaction(connection, QUERIES), run, "")
        deleting = group.create_task(refusal(datasets, OTHER))
        await eventually(lambda: a_run_waits(pool), "the deletion waits for the run")
    assert run.run_id in await deleting


async def test_run_is_not_added_over_a_data_set_that_was_deleted(pool: asyncpg.Pool) -> None:
    stores = await in_postgres(pool)
    await datasets_in(PostgresSession(pool, QUERIES)).delete(OTHER, by())
    with pytest.raises(DatasetNotFound):
        await add(stores, dataset_run(dataset_id=OTHER))


async def a_run_waits(pool: asyncpg.Pool) -> bool:
    return bool(await pool.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"))


async def refusal(datasets: PostgresDatasets, dataset_id: DatasetId) -> str:
    with pytest.raises(DatasetInUse) as refused:
        await datasets.delete(dataset_id, by())
    return refused.value.message
