"""Consumers of JetStream: made where there is none, and never changed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from proctor.values.priority import Priority
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.stream_maker import StreamMaker
from services.common.nats.streams import work_consumer
from services.worker.consumer.nats import NatsShardSource
from tests.fakes.worker.worker_harness import POOL, always
from tests.harness.servers import RunningServer

FIRST = work_consumer(POOL.name, "any", Priority.HIGH, 30)
LATER = replace(FIRST, ack_wait_seconds=6, max_waiting=100)


@pytest.fixture
async def connections(nats: RunningServer) -> AsyncIterator[list[JetStream]]:
    async with AsyncExitStack() as opened:
        clients = [await connect_nats(nats.address, "test") for _ in range(8)]
        for client in clients:
            opened.push_async_callback(client.close)
        await StreamMaker(clients[0], [POOL.name]).make_missing()
        yield [JetStream(each) for each in clients]


async def stored(jetstream: JetStream) -> tuple[float | None, int | None]:
    info = await jetstream.connection.jetstream().consumer_info(FIRST.stream.name, FIRST.durable)
    return info.config.ack_wait, info.config.max_waiting


async def test_consumer_that_exists_is_left_alone_and_reported_once(connections: list[JetStream]) -> None:
    first, later = connections[:2]
    await first.make_consumer(FIRST)
    with capture_logs() as lines:
        await later.make_consumer(LATER)
        await later.make_consumer(LATER)
    [line] = [line for line in lines if line["log_level"] == "warning"]
    assert (line["consumer"], line["fields"]) == (FIRST.durable, ["ack_wait", "max_waiting"])
    assert await stored(later) == (30, FIRST.max_waiting)


async def test_consumers_that_are_made_at_once_are_one_and_it_stays(
    connections: list[JetStream],
) -> None:
    specs = [replace(FIRST, ack_wait_seconds=10 + number) for number in range(len(connections))]
    pairs = zip(connections, specs, strict=True)
    await asyncio.gather(*(jetstream.make_consumer(spec) for jetstream, spec in pairs))
    wait, _ = await stored(connections[0])
    assert [each.ack_wait_seconds(spec) for each, spec in zip(connections, specs, strict=True)] == [
        wait
    ] * len(connections)


async def test_deadlines_are_extended_by_the_time_of_the_consumer_that_is_there(
    connections: list[JetStream],
) -> None:
    await connections[0].make_consumer(LATER)
    source = NatsShardSource(connections[1], POOL, SystemClock(), 30, always)
    assert source.extension_seconds() == 5, "a pull may meet a consumer with less than the settings say"
    assert await source.pull(None, Priority.HIGH) is None
    assert source.extension_seconds() == 2
