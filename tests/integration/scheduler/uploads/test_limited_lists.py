"""Slow lists are refused beyond a limit, and orders are counted and refused as ever meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import asyncpg
import grpc
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from pydantic import SecretStr

from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import request_count_service_pb2 as request_count_pb2
from proctor.v1 import request_count_service_pb2_grpc as request_count_grpc
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from services.common.grpc.client import open_channel
from services.common.grpc.errors import remote_error
from services.scheduler.postgres import SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.wiring import running_scheduler
from tests.fakes.callers import CALLER_KEY, GATEWAY
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.thorough_cases import first_cases
from tests.harness.servers import nats_server, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

POOLS = "pools: [{name: remote, engine: openai, concurrency: 1, provider: openai, base_url: 'http://x'}]\n"
READS, CALLS = 2, 12
ARTIFACTS = artifact_pb2.ListArtifactsRequest(run_id="11111111-1111-4111-8111-111111111111")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[grpc.aio.Channel, str]]:
    """A scheduler that leads, and the address of its Postgres."""
    folder = tmp_path_factory.mktemp("scheduler")
    (folder / "pools.yaml").write_text(POOLS)
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(postgres_server())
        wire = await opened.enter_async_context(nats_server())
        settings = SchedulerSettings(
            postgres_dsn=postgres.address,
            nats_url=wire.address,
            dispatch_proof_key=SecretStr(DISPATCH_PROOF_KEY),
            caller_key=SecretStr(CALLER_KEY),
            scheduler_address="127.0.0.1:0",
            pools_file=folder / "pools.yaml",
            object_store=(folder / "objects").as_uri(),
            postgres_connections=2,
            read_connections=READS,
            read_wait_seconds=0.5,
            read_timeout_seconds=2.0,
        )
        scheduler = await opened.enter_async_context(running_scheduler(settings))
        address = f"127.0.0.1:{scheduler.grpc.port}"
        channel = await opened.enter_async_context(open_channel(address, signer=GATEWAY))
        yield channel, postgres.address


@first_cases(
    2,
    ("table", "method", "asked"),
    [
        ("datasets", "DatasetService/ListDatasets", dataset_pb2.ListDatasetsRequest(page_size=5)),
        ("user_suite_versions", "SchedulerService/ListSuites", scheduler_pb2.ListSuitesRequest()),
        ("rollout_artifacts", "ArtifactService/ListArtifacts", ARTIFACTS),
        ("rollout_artifacts", "StorageService/GetStorage", storage_pb2.GetStorageRequest(user="ann")),
    ],
)
async def test_slow_lists_are_refused_beyond_a_limit_and_hold_up_no_order(
    stand: tuple[grpc.aio.Channel, str], table: str, method: str, asked: Message
) -> None:
    channel, address = stand
    counting = request_count_grpc.RequestCountServiceStub(channel)
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/proctor.v1.{method}")
    send = partial(call, asked.SerializeToString())
    blocker = await asyncpg.connect(address, server_settings={"search_path": SCHEMA})
    try:
        async with asyncio.timeout(30), blocker.transaction():
            await blocker.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            reads = [asyncio.ensure_future(send()) for _ in range(CALLS)]
            await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
            # The first are still held up, and none of them has a connection that this needs.
            counted = await counting.CountRequest(
                request_count_pb2.CountRequestRequest(user="ann"), timeout=5
            )
            assert counted.limit > 0
            refused = await asyncio.gather(*reads, return_exceptions=True)
    finally:
        await blocker.close()
    found = [remote_error(one) for one in refused if isinstance(one, grpc.aio.AioRpcError)]
    assert [one.kind for one in found] == ["unavailable"] * CALLS
    assert {one.facts["retry_after_seconds"] for one in found} == {"2"}
    assert sum("at once" in one.message for one in found) == CALLS - READS
    assert sum("exceeded 2 s" in one.message for one in found) == READS
    assert await send() is not None
