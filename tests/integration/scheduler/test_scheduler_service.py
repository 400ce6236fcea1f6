"""The whole scheduler on real Postgres and NATS, beside the real results; the worker is the test."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import grpc
import pytest
import pytest_asyncio

from proctor.v1 import (
    run_pb2,
    work_messages_pb2,
)
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values import messaging
from proctor.values.priority import Priority
from services.common.grpc.errors import remote_error
from services.common.nats import streams
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from tests.fakes.scheduler.served_scheduler import (
    ACK_WAIT_SECONDS,
    MODEL,
    ROWS,
    ServedScheduler,
    served_scheduler,
    standby_scheduler,
    until,
)
from tests.harness.keyed_suite import SUITE

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def entry(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedScheduler]:
    async with served_scheduler(tmp_path_factory.mktemp("scheduler")) as stands:
        yield stands


async def test_run_goes_from_order_to_closed(entry: ServedScheduler) -> None:
    entry.worker.asked.clear()
    run_id = await entry.submit(rollouts=2)
    ended = await entry.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED
    assert (ended.progress.recorded, ended.progress.total) == (2 * ROWS, 2 * ROWS)
    assert ended.progress.phase == "done"
    assert ended.environment["engine"] == "hand 1"
    assert sorted(entry.worker.asked) == sorted([*range(ROWS), *range(ROWS)])


async def test_shard_holds_all_that_a_worker_needs(entry: ServedScheduler) -> None:
    run_id = await entry.submit(limit=3, params=run_pb2.GenerationParams(temperature=0.5))
    consumer = streams.work_consumer("remote", messaging.ANY_MODEL, Priority.HIGH, ACK_WAIT_SECONDS)
    puller = Puller(JetStream(entry.nats), consumer)
    [message] = await puller.fetch(1, 10)
    shard = work_messages_pb2.WorkShard.FromString(message.data)
    assert message.subject == f"work.remote.any.high.{run_id}"
    assert message.headers is not None
    assert message.headers["Nats-Msg-Id"] == f"{run_id}/1/0/1"
    assert (shard.run_id, shard.shard, shard.attempt, shard.epoch) == (run_id, 0, 1, 1)
    assert shard.model == MODEL
    assert [sample.sample for sample in shard.samples] == [0, 1, 2]
    assert all(sample.prompt.text for sample in shard.samples)
    assert shard.params.temperature == 0.5
    assert shard.params.max_tokens > 0
    assert shard.time_left.seconds > 0
    await message.nak()
    await puller.close()
    await entry.finish(run_id)


async def test_streams_wiped_in_mid_run_are_made_good(entry: ServedScheduler) -> None:
    entry.worker.asked.clear()
    run_id = await entry.submit()

    async def is_on_the_wire() -> bool:
        return await entry.worker.answer(1) > 0

    await until(is_on_the_wire)
    jetstream = entry.nats.jetstream()
    for info in await jetstream.streams_info():
        await jetstream.delete_stream(str(info.config.name))
    ended = await entry.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED
    assert ended.progress.recorded == ROWS


async def test_cancelled_run_leaves_the_wire_at_once_and_its_retry_asks_the_rest(
    entry: ServedScheduler,
) -> None:
    entry.worker.asked.clear()
    run_id = await entry.submit()

    async def half_is_answered() -> bool:
        await entry.worker.answer(1)
        return (await entry.run(run_id)).progress.recorded > 0

    await until(half_is_answered)
    await entry.stub.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
    ended = await asyncio.wait_for(entry.watched(run_id), 20)
    assert ended.state == run_pb2.RUN_STATE_CANCELLED
    assert (
        await JetStream(entry.nats).pending(streams.work_stream("remote"), messaging.work_of_run(run_id)) == 0
    )
    kept = ended.progress.recorded
    entry.worker.asked.clear()
    await entry.stub.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))
    again = await entry.finish(run_id)
    assert (again.state, again.epoch) == (run_pb2.RUN_STATE_COMPLETED, 2)
    assert len(entry.worker.asked) == ROWS - kept


async def test_model_that_cannot_be_loaded_fails_the_run_within_seconds(entry: ServedScheduler) -> None:
    run_id = await entry.submit()
    await entry.worker.send_heartbeat(cannot_load={MODEL: "no config.json in /models/fake"})
    ended = await asyncio.wait_for(entry.watched(run_id), 15)
    assert ended.state == run_pb2.RUN_STATE_FAILED
    assert ended.error.reason == "MODEL_CANNOT_LOAD"
    assert "no config.json" in ended.error.message
    await entry.worker.send_heartbeat()
    workers = await entry.stub.ListWorkers(scheduler_pb2.ListWorkersRequest())
    assert [worker.worker_id for worker in workers.workers] == ["hand"]


async def test_run_goes_on_when_leadership_changes_between_two_schedulers(entry: ServedScheduler) -> None:
    """Both answer calls, one leads. Its lock is taken away in mid-run, and the next leader continues."""
    async with standby_scheduler(entry.settings, entry.nats) as second:
        run_id = await second.submit()

        async def is_under_way() -> bool:
            return await entry.worker.answer(1) > 0

        await until(is_under_way)
        connection = await asyncpg.connect(entry.settings.postgres_dsn)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%-leader'"
        )
        await connection.close()
        ended = await second.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED
    assert ended.progress.recorded == ROWS


async def test_refusals_come_with_code_reason_and_sentence(entry: ServedScheduler) -> None:
    order = run_pb2.RunOrder(suite="glu", model=MODEL)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await entry.stub.SubmitRun(scheduler_pb2.SubmitRunRequest(order=order))
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    error = remote_error(refusal.value)
    assert (error.reason, error.message) == ("UNKNOWN_SUITE", f"Invalid benchmark suite. Supported: {SUITE}")
    for run_id in ("nonsense", str(uuid4())):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await entry.run(run_id)
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    "request_",
    [
        scheduler_pb2.ListRunsRequest(benchmark="\0"),
        scheduler_pb2.ListRunsRequest(model="a\0"),
        scheduler_pb2.ListRunsRequest(run_id_prefix="g"),
        scheduler_pb2.ListRunsRequest(run_id_prefix="0" * 33),
    ],
    ids=["benchmark", "model", "no digits", "longer than an id"],
)
async def test_list_filter_that_nothing_can_match_is_refused(
    entry: ServedScheduler, request_: scheduler_pb2.ListRunsRequest
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await entry.stub.ListRuns(request_)
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_lists_page_through_all_runs(entry: ServedScheduler) -> None:
    seen: list[str] = []
    request = scheduler_pb2.ListRunsRequest(page_size=2)
    while True:
        page = await entry.stub.ListRuns(request)
        seen += [run.run_id for run in page.runs]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert len(seen) == len(set(seen)) == page.total
    suites = await entry.stub.ListSuites(scheduler_pb2.ListSuitesRequest())
    assert [suite.suite for suite in suites.suites] == [SUITE]
