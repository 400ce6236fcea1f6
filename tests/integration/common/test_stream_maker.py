"""One service makes the streams; what there is stays as it is, and what differs is reported once."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from proctor.values.priority import Priority
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.streams import StreamLimits, StreamMaker
from services.worker.consumer.nats import NatsShardSource
from tests.fakes.worker.worker_harness import POOL, always
from tests.harness.servers import POOLS, RunningServer

KINDS = ("WORK", "KV_WORKERS", "KV_SWITCHES", "KV_QUARANTINE")
NAMES = {*(f"{kind}_{pool}" for kind in KINDS for pool in POOLS), "OUTCOMES", "KV_RUNS", "KV_QUOTAS"}


@pytest.fixture
async def connection(nats: RunningServer) -> AsyncIterator[Client]:
    connection = await connect_nats(nats.address, "tests")
    yield connection
    await connection.close()


async def test_what_is_missing_is_made_with_the_settings(connection: Client) -> None:
    manager = connection.jsm()
    await manager.delete_stream("WORK_remote")
    await manager.delete_stream("KV_RUNS")
    await StreamMaker(connection, POOLS, StreamLimits(work_bytes=2**24)).make_missing()
    assert {info.config.name for info in await manager.streams_info()} == NAMES
    assert (await manager.stream_info("WORK_remote")).config.max_bytes == 2**24


async def test_what_an_operator_changed_stays_and_is_reported_once(connection: Client) -> None:
    manager, maker = connection.jsm(), StreamMaker(connection, POOLS)
    config = (await manager.stream_info("OUTCOMES")).config
    await manager.update_stream(config.evolve(max_bytes=2 * 1024**3))
    with capture_logs() as logged:
        await maker.make_missing()
        await maker.make_missing()
    assert [(line["stream"], line["fields"]) for line in logged] == [("OUTCOMES", ["max_bytes"])]
    assert (await manager.stream_info("OUTCOMES")).config.max_bytes == 2 * 1024**3


async def test_a_worker_makes_and_changes_no_stream(connection: Client) -> None:
    manager = connection.jsm()
    config = (await manager.stream_info("WORK_remote")).config
    await manager.update_stream(config.evolve(max_bytes=2 * 1024**3))
    await manager.delete_stream("OUTCOMES")
    assert (
        await NatsShardSource(JetStream(connection), POOL, SystemClock(), 30, always).pull(
            None, Priority.HIGH
        )
        is None
    )
    assert (await manager.stream_info("WORK_remote")).config.max_bytes == 2 * 1024**3
    assert "OUTCOMES" not in {info.config.name for info in await manager.streams_info()}
