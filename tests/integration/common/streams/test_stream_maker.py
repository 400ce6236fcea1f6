"""One service makes the streams; what there is stays as it is, and what differs is reported once."""

from collections.abc import AsyncIterator, Iterable

import pytest
from nats.aio.client import Client
from nats.js.api import StreamInfo
from structlog.testing import capture_logs

from proctor.values.priority import Priority
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.stream_maker import StreamLimits, StreamMaker
from services.worker.consumer.nats import NatsShardSource
from tests.fakes.worker.worker_harness import POOL, always
from tests.harness.servers import POOLS, RunningServer, nats_server

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


def by_name(infos: Iterable[StreamInfo]) -> dict[str, int]:
    return {str(info.config.name): (info.config.max_bytes or 0) // 1024**2 for info in infos}


async def test_sizes_are_cut_alike_to_the_room_that_the_server_has() -> None:
    async with nats_server(store_bytes=600 * 1024**2) as small:
        connection = await connect_nats(small.address, "tests")
        sizes = by_name(await connection.jsm().streams_info())
        await connection.close()
    assert sizes.keys() == NAMES
    assert 300 < sizes["WORK_local"] + sizes["WORK_remote"] + sizes["OUTCOMES"] <= 600
    assert sizes["WORK_local"] == sizes["WORK_remote"]
    assert sizes["OUTCOMES"] == pytest.approx(4 * sizes["WORK_local"], abs=4)


async def test_without_room_for_the_smallest_streams_the_others_are_made_and_the_reason_is_kept() -> None:
    async with nats_server(store_bytes=140 * 1024**2) as tiny:
        connection = await connect_nats(tiny.address, "tests")
        maker = StreamMaker(connection, POOLS)
        with capture_logs() as logged:
            await maker.make_missing()
            await maker.make_missing()
        sizes = by_name(await connection.jsm().streams_info())
        await connection.close()
    assert sizes.keys() == NAMES - {"OUTCOMES"}
    assert sizes["WORK_local"] == sizes["WORK_remote"] == 32
    assert maker.refused == {"OUTCOMES": "insufficient storage resources available"}
    [refusal] = [line for line in logged if line["event"] == "stream not made"]
    assert "insufficient storage resources available" in refusal["error"]


async def test_a_stream_that_is_refused_keeps_no_other_from_being_made(connection: Client) -> None:
    manager = connection.jsm()
    for name in NAMES:
        await manager.delete_stream(name)
    await manager.add_stream(name="FOREIGN", subjects=["work.local.>"])
    maker = StreamMaker(connection, POOLS)
    try:
        await maker.make_missing()
        assert by_name(await manager.streams_info()).keys() == NAMES - {"WORK_local"} | {"FOREIGN"}
        assert maker.refused == {"WORK_local": "subjects overlap with an existing stream"}
    finally:
        await manager.delete_stream("FOREIGN")
    await maker.make_missing()
    assert maker.refused == {}


async def test_what_a_maker_left_that_ended_in_the_middle_is_deleted(connection: Client) -> None:
    manager = connection.jsm()
    await manager.add_stream(name="ROOM_TRIAL", subjects=["ROOM_TRIAL"], max_bytes=2**24)
    await StreamMaker(connection, POOLS).make_missing()
    assert by_name(await manager.streams_info()).keys() == NAMES


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
