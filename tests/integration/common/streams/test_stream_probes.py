"""Streams that take no messages: a disk that was full, a stream that is full, one that was deleted.

A limit on the size of files is met by the server as a full disk is, and needs no disk of its own.
"""

import resource
from collections.abc import AsyncIterator, Sequence

import psutil
import pytest
from nats.aio.client import Client
from nats.js.errors import APIError

from services.common.nats.connection import connect_nats
from services.common.nats.stream_maker import StreamLimits, StreamMaker
from services.common.nats.stream_probes import StreamProbes
from tests.fakes.eventually import eventually
from tests.harness.servers import POOLS, RunningServer, nats_server

MIB = 1024**2


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    async with nats_server() as server:
        yield server


@pytest.fixture
async def connection(server: RunningServer) -> AsyncIterator[Client]:
    connection = await connect_nats(server.address, "tests")
    yield connection
    await connection.close()


def limit_files(server: RunningServer, size: int) -> None:
    assert server.child.pid is not None
    psutil.Process(server.child.pid).rlimit(psutil.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def publish(connection: Client, outcomes: Sequence[bytes]) -> None:
    for outcome in outcomes:
        await connection.jetstream().publish("outcomes.r", outcome, timeout=5)


async def probed(connection: Client) -> StreamProbes:
    maker, probes = StreamMaker(connection, POOLS), StreamProbes(connection)
    await maker.make_missing()
    await probes.probe(maker.probed)
    return probes


async def test_probes_leave_nothing_that_grows(connection: Client) -> None:
    for _ in range(3):
        assert (await probed(connection)).refused == {}
    infos = await connection.jsm().streams_info()
    assert {info.state.messages for info in infos} == {0}
    assert {info.state.last_seq for info in infos} == {3}


async def test_a_stream_that_refuses_since_its_disk_was_full_is_found_until_nats_is_started_again(
    server: RunningServer, connection: Client
) -> None:
    limit_files(server, 4096)
    with pytest.raises(TimeoutError):
        await publish(connection, [b"x" * 4096])
    limit_files(server, resource.RLIM_INFINITY)
    # Its disk has room again, and still it takes nothing.
    assert (await probed(connection)).refused == {
        "OUTCOMES": "it stores no message, as after its disk was full"
    }
    pid = server.child.pid
    psutil.Process(pid).terminate()
    await eventually(
        lambda: server.child.pid not in (pid, None) and server.child.ready.is_set(), "it is back"
    )
    await eventually(lambda: connection.is_connected, "the connection is back")
    assert (await probed(connection)).refused == {}


async def test_a_full_stream_and_a_missing_one_are_no_fault(connection: Client) -> None:
    manager = connection.jsm()
    await manager.delete_stream("OUTCOMES")
    await StreamMaker(connection, POOLS, StreamLimits(outcome_bytes=MIB)).make_missing()
    with pytest.raises(APIError, match="maximum bytes exceeded"):
        await publish(connection, 20 * [b"x" * (MIB // 8)])
    assert (await probed(connection)).refused == {}
    probes = StreamProbes(connection)
    await manager.delete_stream("OUTCOMES")
    await probes.probe(["OUTCOMES"])
    assert probes.refused == {}
