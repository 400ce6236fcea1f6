"""Deletion of a run leaves nothing, and its sample sets not for long. In memory and in Postgres."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.outcome import OutcomeBatch
from services.results.outcomes.postgres import DELETED_AT_A_TIME, PostgresOutcomes
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.delete_unused_sets import DeleteUnusedSets
from services.results.runs.run_plan import RunPlan
from services.results.samples.errors import SampleSetNotFound
from services.results.summaries.ports import Stores
from tests.fakes.results.memory_results import MemoryProgress, memory_stores
from tests.fakes.results.recorded_run import answered, choice_sample, content_hash, new_id, plan_of, scored
from tests.fakes.results.stores import postgres_stores, record_outcomes_of
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOR_LONG = timedelta(days=1000)
# Sets that are used a minute from now are not used any more.
NOT_AT_ALL = timedelta(minutes=-1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[PostgresSession]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            yield PostgresSession(pool, QUERIES)


def in_postgres(session: PostgresSession) -> Stores:
    return postgres_stores(session)


@pytest.fixture(params=["memory", "postgres"])
def stores(request: pytest.FixtureRequest, session: PostgresSession) -> Stores:
    return memory_stores() if request.param == "memory" else in_postgres(session)


async def committed_set(stores: Stores, salt: str, size: int = 3) -> str:
    """The same for the same salt."""
    staging_id = new_id()
    samples = [choice_sample(at, salt) for at in range(size)]
    await stores.sample_sets.stage(staging_id, samples)
    content = content_hash(samples)
    return (await stores.sample_sets.commit(staging_id, size, content_hash=content)).sample_set_id


async def delete_unused(stores: Stores, kept_for: timedelta) -> None:
    await stores.records.delete_unused_sets(kept_for)
    await stores.sample_sets.delete_staged(kept_for)


async def touch_an_hour_ago(session: PostgresSession, sample_set_id: str) -> None:
    older = "UPDATE sample_sets SET touched_at = now() - interval '61 minutes' WHERE sample_set_id = $1"
    async with session.transaction() as transaction:
        await transaction.connection.execute(older, sample_set_id)


async def recorded_run(stores: Stores, sample_set_id: str, size: int = 3) -> RunPlan:
    plan = (await stores.records.open(plan_of([size], [sample_set_id]), 1)).plan
    await stores.outcomes.record([scored(plan.run_id, answered(at)) for at in range(size)])
    return plan


async def is_readable(stores: Stores, sample_set_id: str) -> bool:
    try:
        return bool(await stores.sample_sets.read(sample_set_id, [0]))
    except SampleSetNotFound:
        return False


async def test_deleted_run_is_not_known_and_can_be_deleted_again(stores: Stores) -> None:
    plan = await recorded_run(stores, await committed_set(stores, new_id()))
    other = await recorded_run(stores, await committed_set(stores, new_id()))
    for _ in range(2):
        await DeleteRunRecord(stores.records, stores.outcomes).delete(plan.run_id)
        assert await stores.records.find(plan.run_id) is None
    assert (await stores.records.all_counts(other)).counts.recorded == 3
    await DeleteRunRecord(stores.records, stores.outcomes).delete(new_id())


async def test_late_outcome_does_not_bring_a_deleted_run_back(stores: Stores) -> None:
    """Also where its plan is still remembered by who records."""
    plan = (await stores.records.open(plan_of([3], [await committed_set(stores, new_id())]), 1)).plan
    progress = MemoryProgress()
    recording = record_outcomes_of(stores, progress).record
    assert (await recording([OutcomeBatch(plan.run_id, 1, (answered(0),), {"engine": "x"})])).written == 1
    reported = len(progress.reports)
    await DeleteRunRecord(stores.records, stores.outcomes).delete(plan.run_id)
    late = OutcomeBatch(plan.run_id, 1, (answered(1),), {"engine": "x"})
    assert (await recording([late])).written == 0
    assert await stores.records.find(plan.run_id) is None
    assert len(progress.reports) == reported
    await DeleteRunRecord(stores.records, stores.outcomes).delete(plan.run_id)


async def test_sample_set_goes_with_its_last_run_after_a_while(stores: Stores) -> None:
    sample_set_id = await committed_set(stores, new_id())
    first, second = [await recorded_run(stores, sample_set_id) for _ in range(2)]
    await DeleteRunRecord(stores.records, stores.outcomes).delete(first.run_id)
    await delete_unused(stores, NOT_AT_ALL)
    assert await is_readable(stores, sample_set_id)
    await DeleteRunRecord(stores.records, stores.outcomes).delete(second.run_id)
    await delete_unused(stores, FOR_LONG)
    assert await is_readable(stores, sample_set_id)
    await delete_unused(stores, NOT_AT_ALL)
    assert not await is_readable(stores, sample_set_id)


async def test_set_that_was_committed_again_stays_for_the_run_that_is_about_to_be_opened(
    session: PostgresSession,
) -> None:
    stores, salt = in_postgres(session), new_id()
    sample_set_id = await committed_set(stores, salt)
    await touch_an_hour_ago(session, sample_set_id)
    assert await committed_set(stores, salt) == sample_set_id
    await delete_unused(stores, timedelta(hours=1))
    assert len((await stores.records.open(plan_of([3], [sample_set_id]), 1)).plan.tasks) == 1


async def test_swept_set_can_be_stored_again(stores: Stores) -> None:
    salt = new_id()
    sample_set_id = await committed_set(stores, salt)
    await delete_unused(stores, NOT_AT_ALL)
    with pytest.raises(SampleSetNotFound):
        await stores.records.open(plan_of([3], [sample_set_id]), 1)
    again = await committed_set(stores, salt)
    assert again != sample_set_id
    assert await is_readable(stores, again)


async def test_set_of_a_run_that_is_being_opened_is_let_alone(session: PostgresSession) -> None:
    stores = in_postgres(session)
    sample_set_id = await committed_set(stores, new_id())
    async with session.transaction() as opening:
        assert await opening.fetchrow("lock_readable_set", sample_set_id=sample_set_id) is not None
        await delete_unused(stores, NOT_AT_ALL)
    assert await is_readable(stores, sample_set_id)


async def test_nothing_of_a_deleted_run_stays_in_any_table(session: PostgresSession) -> None:
    """More outcomes and samples than are deleted at a time."""
    stores = in_postgres(session)
    size = 2 * DELETED_AT_A_TIME + 1
    sample_set_id = await committed_set(stores, new_id(), size)
    plan = await recorded_run(stores, sample_set_id, size)
    await stores.records.add_environment(plan.run_id, {"engine": "x"})
    await DeleteRunRecord(stores.records, stores.outcomes).delete(plan.run_id)
    await DeleteRunRecord(stores.records, stores.outcomes).sweep()
    await delete_unused(stores, NOT_AT_ALL)
    assert await rows_of(session, "run_id", plan.run_id) == {}
    assert await rows_of(session, "sample_set_id", sample_set_id) == {}


async def test_a_deletion_leaves_the_outcomes_to_a_sweep_that_goes_on_after_a_kill(
    session: PostgresSession,
) -> None:
    stores = in_postgres(session)
    plan = await recorded_run(stores, await committed_set(stores, new_id()))
    deletion = DeleteRunRecord(stores.records, stores.outcomes)
    await deletion.delete(plan.run_id)
    assert await rows_of(session, "run_id", plan.run_id) == {"outcomes": 3, "deleted_runs": 1}
    killed = DeleteRunRecord(stores.records, KilledWhileDeleting(session, SystemClock()))
    with pytest.raises(asyncio.CancelledError):
        await killed.sweep()
    await deletion.sweep()
    assert await rows_of(session, "run_id", plan.run_id) == {}


class KilledWhileDeleting(PostgresOutcomes):
    async def delete(self, run_id: str) -> None:
        raise asyncio.CancelledError(run_id)


async def test_samples_that_a_kill_has_left_go_with_the_next_sweep(session: PostgresSession) -> None:
    stores = in_postgres(session)
    sample_set_id = await committed_set(stores, new_id())
    async with session.transaction() as cut_short:
        assert await cut_short.fetchrow("delete_sample_set", sample_set_id=sample_set_id) is not None
    await stores.sample_sets.delete_staged(FOR_LONG)
    assert await rows_of(session, "sample_set_id", sample_set_id) == {}


async def test_the_age_of_a_staged_set_is_measured_by_postgres(session: PostgresSession) -> None:
    """Each chunk makes it young again. The clock of a machine may be an hour ahead, and decides nothing."""
    stores, (left, going_on) = in_postgres(session), [new_id(), new_id()]
    for sample_set_id in (left, going_on):
        await stores.sample_sets.stage(sample_set_id, [choice_sample(0, sample_set_id)])
        await touch_an_hour_ago(session, sample_set_id)
    await stores.sample_sets.stage(going_on, [choice_sample(1, going_on)])
    sweep = DeleteUnusedSets(stores.records, stores.sample_sets, keep_staged=timedelta(hours=1))
    assert await sweep.delete() >= 1
    with pytest.raises(SampleSetNotFound):
        await stores.sample_sets.commit(left, 1)
    await stores.sample_sets.commit(going_on, 2)


async def rows_of(session: PostgresSession, column: str, value: str) -> dict[str, int]:
    """Rows that name a run or a set, by table."""
    found: dict[str, int] = {}
    async with session.transaction() as transaction:
        tables = await transaction.connection.fetch(
            "SELECT table_name FROM information_schema.columns JOIN information_schema.tables"
            " USING (table_schema, table_name)"
            " WHERE table_schema = $1 AND column_name = $2 AND table_type = 'BASE TABLE'",
            SCHEMA,
            column,
        )
        for table in [row["table_name"] for row in tables]:
            query = f"SELECT count(*) FROM {table} WHERE {column} = $1::uuid"
            count = await transaction.connection.fetchval(query, value)
            if count:
                found[table] = count
    return found
