"""Windows that close and runs that are deleted, on the whole scheduler beside the real results."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import RunId
from services.common.clock import SystemClock
from services.common.errors import RemoteError
from services.common.grpc.client import open_channel
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.postgres import QUERIES, SCHEMA
from services.scheduler.runs.lifecycle.change_state import DeleteRun
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from tests.fakes.callers import OPERATOR, SCHEDULER
from tests.fakes.scheduler.served_scheduler import ROWS, ServedScheduler, served_scheduler, until
from tests.fakes.scheduler.surroundings import NoArtifacts, SetClock
from tests.fakes.scheduler_rules import queue_limits

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def entry(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedScheduler]:
    async with served_scheduler(tmp_path_factory.mktemp("scheduler")) as stands:
        yield stands


@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "running"])
async def test_run_whose_window_closes_fails_and_is_closed_with_what_it_has(
    entry: ServedScheduler,
    is_paused: bool,  # noqa: FBT001  # a case of the test
) -> None:
    run_id = await entry.submit()

    async def a_shard_is_answered() -> bool:
        return await entry.worker.answer(1) > 0

    async def it_is_recorded() -> bool:
        return (await entry.run(run_id)).progress.recorded > 0

    await until(a_shard_is_answered)
    await until(it_is_recorded)
    if is_paused:
        await entry.stub.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))
    await entry.change("UPDATE runs SET expires_at = now() WHERE run_id = $1", run_id)
    ended = await asyncio.wait_for(entry.watched(run_id), 20)
    assert ended.state == run_pb2.RUN_STATE_FAILED
    assert ended.error.reason == "DEADLINE_REACHED"
    assert "longer than its completion window" in ended.error.message
    assert 0 < ended.progress.recorded < ROWS
    assert await entry.delete(run_id) == ""


async def test_run_whose_window_closes_while_it_waits_never_runs(entry: ServedScheduler) -> None:
    await entry.change("UPDATE limits SET max_running_runs = 1")
    first, waiting = await entry.submit(), await entry.submit()
    await entry.change("UPDATE runs SET expires_at = now() WHERE run_id = $1", waiting)
    ended = await asyncio.wait_for(entry.watched(waiting), 20)
    await entry.change("UPDATE limits SET max_running_runs = NULL")
    assert (ended.state, ended.error.reason) == (run_pb2.RUN_STATE_FAILED, "DEADLINE_REACHED")
    assert not ended.HasField("started_at")
    assert (await entry.finish(first)).state == run_pb2.RUN_STATE_COMPLETED


async def test_deleted_run_is_gone_from_the_scheduler_and_from_results(entry: ServedScheduler) -> None:
    run_id = await entry.submit()
    assert await entry.delete(run_id) == "RUN_STILL_ACTIVE"
    await entry.finish(run_id)
    assert await entry.delete(run_id) == ""
    assert await entry.delete(run_id) == "RUN_NOT_FOUND"
    async with open_channel(entry.settings.results_address, signer=SCHEDULER) as channel:
        with pytest.raises(RemoteError) as refusal:
            await GrpcRunRecord(channel).counts(RunId(run_id))
    assert refusal.value.reason == "RUN_NOT_FOUND"


@pytest.mark.thorough
async def test_results_that_is_down_is_reported_of_a_deleted_run_later(entry: ServedScheduler) -> None:
    run_id = RunId(await entry.submit())
    await entry.finish(run_id)
    async with (
        await connect_pool(entry.settings.postgres_dsn, schema=SCHEMA) as pool,
        open_channel("127.0.0.1:9") as dead,
        open_channel(entry.settings.results_address, signer=SCHEDULER) as alive,
    ):
        sessions = PostgresSession(pool, QUERIES)
        runs = PostgresRuns(sessions, PostgresLimits(sessions, queue_limits()))
        record = GrpcRunRecord(alive)
        await DeleteRun(runs, GrpcRunRecord(dead), NoArtifacts(), SystemClock()).delete(run_id, OPERATOR)
        assert (await record.counts(run_id)).counts.recorded == ROWS
        later = SetClock()
        later.seconds += 10 * 365 * 24 * 3600
        await DeleteRun(runs, record, NoArtifacts(), later).sweep()
        assert await runs.deleted(later.now()) == []
        with pytest.raises(RemoteError):
            await record.counts(run_id)


async def test_list_shows_the_progress_of_running_runs(entry: ServedScheduler) -> None:
    run_id = await entry.submit()

    async def some_is_listed() -> bool:
        await entry.worker.answer(1)
        wanted = scheduler_pb2.ListRunsRequest(kind=run_pb2.RUN_KIND_SUITE, page_size=1)
        [listed] = (await entry.stub.ListRuns(wanted)).runs
        assert listed.run_id == run_id
        return 0 < listed.progress.recorded < listed.progress.total == ROWS

    await until(some_is_listed)
    await entry.finish(run_id)
    wanted = scheduler_pb2.ListRunsRequest(kind=run_pb2.RUN_KIND_DATASET)
    assert (await entry.stub.ListRuns(wanted)).total == 0
