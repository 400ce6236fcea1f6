"""Files and batches through a scheduler on real Postgres and NATS; a test says how their runs are."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import grpc
import pytest

from proctor.v1 import artifact_service_pb2_grpc as artifact_grpc
from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.v1 import change_service_pb2_grpc as change_grpc
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from proctor.v1 import file_service_pb2 as file_pb2
from proctor.v1 import file_service_pb2_grpc as file_grpc
from proctor.v1 import queue_service_pb2_grpc as queue_grpc
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.v1 import storage_service_pb2_grpc as storage_grpc
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from services.common.clock import SystemClock
from services.common.errors import RemoteError
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.scheduler.postgres import SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import RunningScheduler, running_scheduler
from tests.fakes.callers import CALLER_KEY, GATEWAY, OPERATOR_METADATA
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.batch_results import BatchResults, RecordedRun, batch_results
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.storage.uploads import cut
from tests.harness.servers import nats_server, ordinary_role, postgres_server

if TYPE_CHECKING:
    from proctor.v1.artifact_service_pb2_grpc import ArtifactServiceAsyncStub
    from proctor.v1.batch_service_pb2_grpc import BatchServiceAsyncStub
    from proctor.v1.change_service_pb2_grpc import ChangeServiceAsyncStub
    from proctor.v1.dataset_service_pb2_grpc import DatasetServiceAsyncStub
    from proctor.v1.file_service_pb2_grpc import FileServiceAsyncStub
    from proctor.v1.queue_service_pb2_grpc import QueueServiceAsyncStub
    from proctor.v1.rollout_service_pb2_grpc import RolloutServiceAsyncStub
    from proctor.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub
    from proctor.v1.storage_service_pb2_grpc import StorageServiceAsyncStub
    from proctor.v1.suite_service_pb2_grpc import SuiteServiceAsyncStub

POOLS = """
pools: [{name: remote, engine: openai, concurrency: 1, provider: openai, base_url: 'http://127.0.0.1:1'}]
aliases: {house: openai/m}
"""
CHAT = "/v1/chat/completions"
MAX_BYTES = 20_000_000
MAX_LINES = 5_000


def lines(count: int, salt: str = "r", model: str = "m") -> bytes:
    body = {"model": model, "messages": [{"role": "user", "content": "One and one?"}]}
    return jsonl(batch_line(custom_id=f"{salt}-{number}", body=body) for number in range(count))


@dataclass(frozen=True)
class BatchHarness:
    files: "FileServiceAsyncStub"
    batches: "BatchServiceAsyncStub"
    datasets: "DatasetServiceAsyncStub"
    runs: "SchedulerServiceAsyncStub"
    results: BatchResults
    folder: Path
    postgres: str
    results_address: str
    changes: "ChangeServiceAsyncStub"
    queue: "QueueServiceAsyncStub"
    storage: "StorageServiceAsyncStub"
    suites: "SuiteServiceAsyncStub"
    rollouts: "RolloutServiceAsyncStub"
    nats: str
    artifacts: "ArtifactServiceAsyncStub"
    address: str

    def objects(self) -> list[str]:
        """All that lies in the object store, also what the library would not list."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def objects_of(self, file_id: str) -> list[str]:
        return [name for name in self.objects() if file_id in name]

    async def upload(self, content: bytes, **header: Any) -> file_pb2.File:
        return (await self.files.UploadFile(upload_requests(cut(content), **header))).file

    async def read(self, file_id: str, first_byte: int = 0) -> bytes:
        request = file_pb2.ReadFileRequest(file_id=file_id, first_byte=first_byte)
        return b"".join([response.content async for response in self.files.ReadFile(request)])

    async def delete(self, file_id: str) -> None:
        await self.files.DeleteFile(file_pb2.DeleteFileRequest(file_id=file_id), metadata=OPERATOR_METADATA)

    async def create(self, file_id: str, **changes: Any) -> batch_pb2.Batch:
        fields = {"endpoint": CHAT, "completion_window": "24h", "user": "ann", **changes}
        request = batch_pb2.CreateBatchRequest(input_file_id=file_id, **fields)
        return (await self.batches.CreateBatch(request)).batch

    async def get(self, batch_id: str) -> batch_pb2.Batch:
        return (await self.batches.GetBatch(batch_pb2.GetBatchRequest(batch_id=batch_id))).batch

    async def cancel(self, batch_id: str) -> batch_pb2.Batch:
        request = batch_pb2.CancelBatchRequest(batch_id=batch_id)
        return (await self.batches.CancelBatch(request, metadata=OPERATOR_METADATA)).batch

    async def reaches(self, batch_id: str, state: str) -> batch_pb2.Batch:
        async def is_there() -> bool:
            return state_word((await self.get(batch_id)).state) == state

        await eventually(is_there, f"{batch_id} is {state}")
        return await self.get(batch_id)

    async def change_run(self, run_id: str, **columns: object) -> None:
        """As the leader would have."""
        named = ", ".join(f"{name} = ${index}" for index, name in enumerate(columns, 2))
        await self.execute(f"UPDATE runs SET {named} WHERE run_id = $1", run_id, *columns.values())

    async def execute(self, statement: str, *values: object) -> None:
        connection = await asyncpg.connect(self.postgres, server_settings={"search_path": SCHEMA})
        try:
            await connection.execute(statement, *values)
        finally:
            await connection.close()

    async def count(self, statement: str, *values: object) -> int:
        connection = await asyncpg.connect(self.postgres, server_settings={"search_path": SCHEMA})
        try:
            return int(await connection.fetchval(statement, *values))
        finally:
            await connection.close()


def state_word(state: int) -> str:
    name = batch_pb2.BatchState.Name(state)  # type: ignore[arg-type]  # the number of one
    return name.removeprefix("BATCH_STATE_").lower()


async def upload_requests(
    pieces: Iterable[bytes], *, is_whole: bool = True, **header: Any
) -> AsyncIterator[file_pb2.UploadFileRequest]:
    """`header` has fields of the contract."""
    reported = {"name": "in.jsonl", "user": "ann", "purpose": file_pb2.FILE_PURPOSE_BATCH, **header}
    yield file_pb2.UploadFileRequest(header=file_pb2.FileHeader(**reported))
    for piece in pieces:
        yield file_pb2.UploadFileRequest(content=piece)
    if is_whole:
        yield file_pb2.UploadFileRequest(end=file_pb2.FileEnd())


def counts_json(answered: int, failed: int) -> str:
    """As the store keeps the counts of a closed run."""
    task = {"task": "rows", "recorded": answered + failed, "failed": failed, "unparsed": 0}
    usage = {"prompt_tokens": answered, "completion_tokens": answered}
    return json.dumps({"epoch": 1, "tasks": [task], "failures": {}, "environment": {}, "usage": usage})


OUTPUT = (b'{"custom_id": "r-0"}\n', b'{"custom_id": "r-1"}\n')
ERRORS = (b'{"custom_id": "r-2"}\n',)


async def created(harness: BatchHarness, count: int = 3, **changes: Any) -> batch_pb2.Batch:
    """Its run is never planned by itself, since results is away."""
    file = await harness.upload(lines(count, uuid4().hex))
    return await harness.create(file.file_id, **changes)


async def end_run(
    harness: BatchHarness, batch: batch_pb2.Batch, state: str = "completed", **columns: Any
) -> None:
    """As the leader would have ended and closed it."""
    ended = {
        "state": state,
        "is_closed": True,
        "planned_epoch": 1,
        "total": batch.total,
        "finished_at": SystemClock().now(),
        "final_counts": counts_json(2, 1),
    }
    await harness.change_run(batch.run_id, **{**ended, **columns})


def recorded(harness: BatchHarness, batch: batch_pb2.Batch) -> RecordedRun:
    harness.results.runs[batch.run_id] = RecordedRun(list(OUTPUT), list(ERRORS))
    return harness.results.runs[batch.run_id]


@asynccontextmanager
async def batch_harness(folder: Path, **changes: Any) -> AsyncIterator[BatchHarness]:
    """`changes` are settings of the scheduler."""
    (folder / "pools.yaml").write_text(POOLS)
    results = BatchResults()
    results.gate.set()
    async with AsyncExitStack() as opened:
        postgres, wire, address = await asyncio.gather(
            opened.enter_async_context(postgres_server()),
            opened.enter_async_context(nats_server()),
            opened.enter_async_context(batch_results(results)),
        )
        settings = SchedulerSettings(
            **{
                "postgres_dsn": await ordinary_role(postgres.address),
                "nats_url": wire.address,
                "scheduler_address": "127.0.0.1:0",
                "results_address": address,
                "dispatch_proof_key": DISPATCH_PROOF_KEY,
                "caller_key": CALLER_KEY,
                "pools_file": folder / "pools.yaml",
                "object_store": (folder / "objects").as_uri(),
                "max_pending_runs_per_user": 1000,
                # No more than one is planned in vain at a time.
                "max_running_runs": 1,
                "max_batch_file_bytes": MAX_BYTES,
                "max_batch_lines": MAX_LINES,
                **changes,
            }
        )
        scheduler: RunningScheduler = await opened.enter_async_context(running_scheduler(settings))
        own_address = f"127.0.0.1:{scheduler.grpc.port}"
        channel = await opened.enter_async_context(open_channel(own_address, signer=GATEWAY))
        yield BatchHarness(
            file_grpc.FileServiceStub(channel),
            batch_grpc.BatchServiceStub(channel),
            dataset_grpc.DatasetServiceStub(channel),
            scheduler_grpc.SchedulerServiceStub(channel),
            results,
            folder / "objects",
            postgres.address,
            address,
            change_grpc.ChangeServiceStub(channel),
            queue_grpc.QueueServiceStub(channel),
            storage_grpc.StorageServiceStub(channel),
            suite_grpc.SuiteServiceStub(channel),
            rollout_grpc.RolloutServiceStub(channel),
            wire.address,
            artifact_grpc.ArtifactServiceStub(channel),
            own_address,
        )


@asynccontextmanager
async def refused() -> AsyncIterator[list[RemoteError]]:
    reported: list[RemoteError] = []
    with pytest.raises(grpc.aio.AioRpcError) as error:
        yield reported
    reported.append(remote_error(error.value))
