"""The whole scheduler on real Postgres and NATS, beside the real results; the worker answers on demand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import asyncpg
import grpc
import nats
from nats.aio.client import Client
from pydantic import SecretStr

from proctor.keda import externalscaler_pb2_grpc as externalscaler_grpc
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import (
    model_pb2,
    outcome_pb2,
    run_pb2,
    work_messages_pb2,
)
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.values import messaging
from proctor.values.priority import Priority
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.results.settings import ResultsSettings
from services.results.wiring import running_results
from services.scheduler.postgres import SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import running_scheduler
from tests.fakes.callers import CALLER_KEY, GATEWAY
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.storage.uploads import cut, upload
from tests.harness.keyed_suite import SUITE, write_keyed_suite
from tests.harness.servers import nats_server, postgres_server

ROWS = 200
MODEL = "openai/fake"
POOLS = (
    "pools:\n  - {name: remote, engine: openai, concurrency: 64, provider: openai, base_url: 'http://x'}\n"
    "aliases: {small: openai/fake}\n"
)
ACK_WAIT_SECONDS = 30.0


@dataclass
class HandWorker:
    """Takes shards off the stream and answers them on demand."""

    nats: Client
    asked: list[int] = field(default_factory=list)

    async def send_heartbeat(self, **changes: object) -> None:
        status = work_messages_pb2.WorkerStatus(
            worker_id="hand",
            pool="remote",
            engine="openai",
            concurrency=64,
            state=model_pb2.WORKER_STATE_READY,
        )
        status.sent_at.GetCurrentTime()
        for name, value in changes.items():
            getattr(status, name).update(value)
        bucket = Bucket(JetStream(self.nats), streams.heartbeat_bucket("remote"))
        await bucket.put("hand", status.SerializeToString())

    async def answer(self, limit: int = 100) -> int:
        """Answers up to so many shards; gives their number."""
        jetstream = JetStream(self.nats)
        consumer = streams.work_consumer("remote", messaging.ANY_MODEL, Priority.HIGH, ACK_WAIT_SECONDS)
        puller = Puller(jetstream, consumer)
        messages = await puller.fetch(limit, 0.2)
        for message in messages:
            shard = work_messages_pb2.WorkShard.FromString(message.data)
            self.asked += [sample.sample for sample in shard.samples]
            batch = _answers(shard)
            subject = messaging.outcome_subject(shard.run_id)
            await jetstream.publish(subject, batch.SerializeToString(), str(uuid4()))
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
        dispatch_proofs=[shard.dispatch_proof],
        run_id=shard.run_id,
        epoch=shard.epoch,
        worker_id="hand",
        outcomes=outcomes,
        environment={"engine": "hand 1"},
    )


@dataclass(frozen=True)
class ServedScheduler:
    settings: SchedulerSettings
    nats: Client
    worker: HandWorker
    stub: "scheduler_grpc.SchedulerServiceAsyncStub"
    datasets: "dataset_grpc.DatasetServiceAsyncStub"
    scaler: "externalscaler_grpc.ExternalScalerAsyncStub"

    async def upload(self, content: bytes, name: str = "rows.jsonl") -> str:
        """Gives the id of the data set."""
        answer = await upload(self.datasets, cut(content), name=name)
        assert answer.dataset.dataset_id, answer
        return answer.dataset.dataset_id

    async def submit(self, **order: object) -> str:
        wanted = run_pb2.RunOrder(**{"suite": SUITE, "model": MODEL, **order})  # type: ignore[arg-type]  # fields of an order
        response = await self.stub.SubmitRun(scheduler_pb2.SubmitRunRequest(order=wanted))
        return response.run.run_id

    async def run(self, run_id: str) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=run_id)
        return (await self.stub.GetRun(request)).run

    async def delete(self, run_id: str) -> str:
        """The reason of a refusal; empty where there is none."""
        try:
            await self.stub.DeleteRun(scheduler_pb2.DeleteRunRequest(run_id=run_id))
        except grpc.aio.AioRpcError as error:
            return remote_error(error).reason
        return ""

    async def change(self, statement: str, *values: object) -> None:
        """Behind the back of the scheduler."""
        connection = await asyncpg.connect(
            self.settings.postgres_dsn, server_settings={"search_path": SCHEMA}
        )
        await connection.execute(statement, *values)
        await connection.close()

    async def finish(self, run_id: str) -> run_pb2.Run:
        """Answers all that comes until the watch of the run ends."""
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            watching = group.create_task(self.watched(run_id))
            while not watching.done():
                await self.worker.answer()
        return watching.result()

    async def watched(self, run_id: str) -> run_pb2.Run:
        last = run_pb2.Run()
        async for response in self.stub.WatchRun(scheduler_pb2.WatchRunRequest(run_id=run_id)):
            last = response.run
        return last


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def served_scheduler(folder: Path) -> AsyncIterator[ServedScheduler]:
    """With its servers and results; what is read from files lies in the folder."""
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        wire = await opened.enter_async_context(nats_server())
        results = await opened.enter_async_context(
            running_results(
                ResultsSettings(
                    postgres_dsn=postgres.address,
                    nats_url=wire.address,
                    results_address="127.0.0.1:0",
                    dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
                    caller_key=SecretStr(CALLER_KEY),
                )
            )
        )
        settings = _settings(folder, (postgres.address, wire.address), f"127.0.0.1:{results.grpc.port}")
        connection = await nats.connect(wire.address)
        opened.push_async_callback(connection.close)
        async with standby_scheduler(settings, connection) as stands:
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
        object_store=(folder / "objects").as_uri(),
        dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
        caller_key=SecretStr(CALLER_KEY),
        reconcile_quiet_seconds=0.5,
    )


@asynccontextmanager
async def standby_scheduler(
    settings: SchedulerSettings, connection: Client
) -> AsyncIterator[ServedScheduler]:
    async with (
        running_scheduler(settings) as scheduler,
        open_channel(f"127.0.0.1:{scheduler.grpc.port}", signer=GATEWAY) as channel,
    ):
        stub = scheduler_grpc.SchedulerServiceStub(channel)
        datasets = dataset_grpc.DatasetServiceStub(channel)
        scaler = externalscaler_grpc.ExternalScalerStub(channel)
        yield ServedScheduler(settings, connection, HandWorker(connection), stub, datasets, scaler)
