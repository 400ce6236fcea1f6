"""The whole scheduler on real Postgres and NATS, beside the real results; the worker is the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import asyncpg
import grpc
import nats
import pytest
import pytest_asyncio
from google.protobuf import timestamp_pb2
from nats.aio.client import Client

from proctor.v1 import (
    outcome_pb2,
    run_pb2,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
    work_messages_pb2,
)
from services.common import subjects
from services.common.grpc_client import open_channel, remote_error
from services.common.jetstream import JetStream
from services.results.settings import ResultsSettings
from services.results.wiring import running_results
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import running_scheduler
from tests.keyed_suite import SUITE, write_keyed_suite
from tests.servers import nats_server, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 200
MODEL = "openai/fake"
POOLS = (
    "pools:\n  - {name: remote, engine: openai, concurrency: 64, provider: openai, base_url: 'http://x'}\n"
)
ACK_WAIT_SECONDS = 30.0


@dataclass
class HandWorker:
    """Takes shards off the stream and answers them, when told."""

    nats: Client
    asked: list[int] = field(default_factory=list)

    async def beat(self, **changes: object) -> None:
        status = work_messages_pb2.WorkerStatus(
            worker_id="hand", pool="remote", engine="openai", concurrency=64, condition="ready"
        )
        status.sent_at.GetCurrentTime()
        for name, value in changes.items():
            getattr(status, name).update(value)
        bucket = JetStream(self.nats).bucket(subjects.WORKERS_BUCKET)
        await bucket.put("hand", status.SerializeToString())

    async def answer(self, most: int = 100) -> int:
        """Answers up to so many shards; gives their number."""
        jetstream = JetStream(self.nats)
        consumer = subjects.work_consumer("remote", subjects.ANY_MODEL, "high", ACK_WAIT_SECONDS)
        puller = jetstream.puller(consumer)
        messages = await puller.fetch(most, 0.2)
        for message in messages:
            shard = work_messages_pb2.WorkShard.FromString(message.data)
            self.asked += [sample.sample for sample in shard.samples]
            batch = _answers(shard)
            subject = subjects.outcome_subject(shard.run_id)
            await jetstream.publish(subjects.OUTCOMES, subject, batch.SerializeToString(), str(uuid4()))
            await message.ack()
        await puller.close()
        return len(messages)


def _answers(shard: work_messages_pb2.WorkShard) -> work_messages_pb2.OutcomeBatch:
    outcomes = [
        outcome_pb2.Outcome(
            sample=sample.sample,
            rollout=shard.rollout,
            shard=shard.shard,
            attempt=shard.attempt,
            answer=outcome_pb2.Answer(text="K", finish_reason="stop"),
            timing=outcome_pb2.Timing(total_seconds=0.1),
        )
        for sample in shard.samples
    ]
    return work_messages_pb2.OutcomeBatch(
        run_id=shard.run_id,
        epoch=shard.epoch,
        worker_id="hand",
        outcomes=outcomes,
        environment={"engine": "hand 1"},
    )


@dataclass(frozen=True)
class Standing:
    settings: SchedulerSettings
    nats: Client
    worker: HandWorker
    stub: scheduler_service_pb2_grpc.SchedulerServiceAsyncStub

    async def submit(self, **order: object) -> str:
        wanted = run_pb2.RunOrder(suite=SUITE, model=MODEL, **order)  # type: ignore[arg-type]  # fields of an order
        response = await self.stub.SubmitRun(scheduler_service_pb2.SubmitRunRequest(order=wanted))
        return response.run.run_id

    async def run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_service_pb2.GetRunRequest(run_id=run_id)
        return (await self.stub.GetRun(request)).run

    async def finish(self, run_id: str) -> run_pb2.Run:
        """Answers all that comes until the watch of the run ends."""
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            watching = group.create_task(self.watched(run_id))
            while not watching.done():
                await self.worker.answer()
        return watching.result()

    async def watched(self, run_id: str) -> run_pb2.Run:
        last = run_pb2.Run()
        async for response in self.stub.WatchRun(scheduler_service_pb2.WatchRunRequest(run_id=run_id)):
            last = response.run
        return last


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standing]:
    folder = tmp_path_factory.mktemp("scheduler")
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        wire = await opened.enter_async_context(nats_server())
        results = await opened.enter_async_context(
            running_results(
                ResultsSettings(
                    postgres_dsn=postgres.address, nats_url=wire.address, results_address="127.0.0.1:0"
                )
            )
        )
        settings = _settings(folder, (postgres.address, wire.address), f"127.0.0.1:{results.grpc.port}")
        connection = await nats.connect(wire.address)
        opened.push_async_callback(connection.close)
        async with _standing(settings, connection) as stands:
            yield stands


def _settings(folder: Path, servers: tuple[str, str], results_address: str) -> SchedulerSettings:
    write_keyed_suite(folder / "suites", ROWS, is_long=False)
    (folder / "pools.yaml").write_text(POOLS)
    return SchedulerSettings(
        postgres_dsn=servers[0],
        nats_url=servers[1],
        scheduler_address="127.0.0.1:0",
        results_address=results_address,
        pools_file=folder / "pools.yaml",
        suites_dir=folder / "suites",
        reconcile_quiet_seconds=0.5,
    )


@asynccontextmanager
async def _standing(settings: SchedulerSettings, connection: Client) -> AsyncIterator[Standing]:
    async with running_scheduler(settings) as scheduler, _stub_of(scheduler.grpc.port) as stub:
        yield Standing(settings, connection, HandWorker(connection), stub)


@asynccontextmanager
async def _stub_of(port: int) -> AsyncIterator[scheduler_service_pb2_grpc.SchedulerServiceAsyncStub]:
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield scheduler_service_pb2_grpc.SchedulerServiceStub(channel)


async def test_run_goes_from_order_to_closed(standing: Standing) -> None:
    standing.worker.asked.clear()
    run_id = await standing.submit(rollouts=2)
    ended = await standing.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED
    assert (ended.progress.completed, ended.progress.total) == (2 * ROWS, 2 * ROWS)
    assert ended.progress.current_step == "done"
    assert ended.environment["engine"] == "hand 1"
    assert sorted(standing.worker.asked) == sorted([*range(ROWS), *range(ROWS)])


async def test_shard_holds_all_that_a_worker_needs(standing: Standing) -> None:
    run_id = await standing.submit(limit=3, params=run_pb2.GenerationParams(temperature=0.5))
    consumer = subjects.work_consumer("remote", subjects.ANY_MODEL, "high", ACK_WAIT_SECONDS)
    puller = JetStream(standing.nats).puller(consumer)
    [message] = await puller.fetch(1, 10)
    shard = work_messages_pb2.WorkShard.FromString(message.data)
    assert message.subject == f"work.remote.any.high.{run_id}"
    assert message.headers is not None
    assert message.headers["Nats-Msg-Id"] == f"{run_id}/0/1"
    assert (shard.run_id, shard.shard, shard.attempt, shard.epoch) == (run_id, 0, 1, 1)
    assert shard.model == MODEL
    assert [sample.sample for sample in shard.samples] == [0, 1, 2]
    assert all(sample.prompt.text for sample in shard.samples)
    assert shard.params.temperature == 0.5
    assert shard.params.max_tokens > 0
    assert shard.deadline.seconds > timestamp_pb2.Timestamp().seconds
    await message.nak()
    await puller.close()
    await standing.finish(run_id)


async def test_streams_wiped_in_mid_run_are_made_good(standing: Standing) -> None:
    standing.worker.asked.clear()
    run_id = await standing.submit()

    async def is_on_the_wire() -> bool:
        return await standing.worker.answer(1) > 0

    await until(is_on_the_wire)
    jetstream = standing.nats.jetstream()
    for info in await jetstream.streams_info():
        await jetstream.delete_stream(str(info.config.name))
    ended = await standing.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED
    assert ended.progress.completed == ROWS


async def test_cancelled_run_leaves_the_wire_at_once_and_its_retry_asks_the_rest(standing: Standing) -> None:
    standing.worker.asked.clear()
    run_id = await standing.submit()

    async def half_is_answered() -> bool:
        await standing.worker.answer(1)
        return (await standing.run(run_id)).progress.completed > 0

    await until(half_is_answered)
    await standing.stub.CancelRun(scheduler_service_pb2.CancelRunRequest(run_id=run_id))
    ended = await asyncio.wait_for(standing.watched(run_id), 20)
    assert ended.state == run_pb2.RUN_STATE_CANCELLED
    assert await JetStream(standing.nats).pending(subjects.WORK, subjects.work_of_run(run_id)) == 0
    kept = ended.progress.completed
    standing.worker.asked.clear()
    await standing.stub.RetryRun(scheduler_service_pb2.RetryRunRequest(run_id=run_id))
    again = await standing.finish(run_id)
    assert (again.state, again.epoch) == (run_pb2.RUN_STATE_COMPLETED, 2)
    assert len(standing.worker.asked) == ROWS - kept


async def test_model_that_cannot_be_loaded_fails_the_run_within_seconds(standing: Standing) -> None:
    run_id = await standing.submit()
    await standing.worker.beat(cannot_load={MODEL: "no config.json in /models/fake"})
    ended = await asyncio.wait_for(standing.watched(run_id), 15)
    assert ended.state == run_pb2.RUN_STATE_FAILED
    assert ended.error.reason == "MODEL_CANNOT_LOAD"
    assert "no config.json" in ended.error.message
    await standing.worker.beat()
    workers = await standing.stub.ListWorkers(scheduler_service_pb2.ListWorkersRequest())
    assert [worker.worker_id for worker in workers.workers] == ["hand"]


async def test_run_goes_on_when_leadership_changes_between_two_schedulers(standing: Standing) -> None:
    """Both answer calls, one leads. Its lock is taken away in mid-run, and whoever leads then goes on."""
    async with _standing(standing.settings, standing.nats) as second:
        run_id = await second.submit()

        async def is_under_way() -> bool:
            return await standing.worker.answer(1) > 0

        await until(is_under_way)
        connection = await asyncpg.connect(standing.settings.postgres_dsn)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%-leader'"
        )
        await connection.close()
        ended = await second.finish(run_id)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED
    assert ended.progress.completed == ROWS


async def test_refusals_come_with_code_reason_and_sentence(standing: Standing) -> None:
    order = run_pb2.RunOrder(suite="glu", model=MODEL)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await standing.stub.SubmitRun(scheduler_service_pb2.SubmitRunRequest(order=order))
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    error = remote_error(refusal.value)
    assert (error.reason, error.message) == ("UNKNOWN_SUITE", f"Invalid benchmark suite. Supported: {SUITE}")
    for run_id in ("nonsense", str(uuid4())):
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await standing.run(run_id)
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    "request_",
    [scheduler_service_pb2.ListRunsRequest(suite="\0"), scheduler_service_pb2.ListRunsRequest(model="a\0")],
    ids=["suite", "model"],
)
async def test_list_filter_with_a_nul_is_refused(
    standing: Standing, request_: scheduler_service_pb2.ListRunsRequest
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await standing.stub.ListRuns(request_)
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_lists_page_through_all_runs(standing: Standing) -> None:
    seen: list[str] = []
    request = scheduler_service_pb2.ListRunsRequest(page_size=2)
    while True:
        page = await standing.stub.ListRuns(request)
        seen += [run.run_id for run in page.runs]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert len(seen) == len(set(seen)) == page.total
    suites = await standing.stub.ListSuites(scheduler_service_pb2.ListSuitesRequest())
    assert [suite.suite for suite in suites.suites] == [SUITE]
