"""Pulls of several messages by one request that waits at the server."""

import uuid
from collections.abc import AsyncIterator

import pytest
from nats.aio.msg import Msg

from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.streams import OUTCOMES, outcome_consumer
from tests.fakes.eventually import eventually
from tests.harness.servers import nats_server

# Nothing comes again in the time of a test but what is given back.
CONSUMER = outcome_consumer(3600.0)
SECONDS = 10.0


@pytest.fixture
async def jetstream() -> AsyncIterator[JetStream]:
    async with nats_server() as server:
        connection = await connect_nats(server.address, "test")
        yield JetStream(connection)
        await connection.close()


async def send(jetstream: JetStream, *contents: bytes) -> None:
    for content in contents:
        await jetstream.publish("outcomes.run", content, uuid.uuid4().hex)


async def fetched(puller: Puller, count: int) -> list[bytes]:
    found: list[Msg] = []

    async def are_there() -> bool:
        found.extend(await puller.fetch(count - len(found), SECONDS))
        return len(found) == count

    await eventually(are_there, "the messages have come")
    for message in found:
        await message.ack()
    return [message.data for message in found]


async def test_one_request_brings_as_many_messages_as_it_asks_for(jetstream: JetStream) -> None:
    asked: list[str] = []

    async def note(message: Msg) -> None:
        asked.append(message.subject)

    await jetstream.connection.subscribe("$JS.API.CONSUMER.MSG.NEXT.>", cb=note)
    puller = Puller(jetstream, CONSUMER, batch=4)
    assert await puller.fetch(4, 0.01) == []
    for content in (b"1", b"2", b"3", b"4"):
        await send(jetstream, content)
        assert await fetched(puller, 1) == [content]
    await jetstream.connection.flush()
    assert len(asked) == 1
    await send(jetstream, b"5")
    assert await fetched(puller, 1) == [b"5"]


async def test_no_more_come_at_once_than_are_wanted(jetstream: JetStream) -> None:
    puller = Puller(jetstream, CONSUMER, batch=4)
    await send(jetstream, b"1", b"2", b"3")
    assert await fetched(puller, 2) == [b"1", b"2"]
    assert await fetched(puller, 1) == [b"3"]


async def test_what_nobody_fetched_is_given_back_at_the_end(jetstream: JetStream) -> None:
    puller = Puller(jetstream, CONSUMER, batch=4)
    assert await puller.fetch(4, 0.01) == []
    await send(jetstream, b"1", b"2", b"3")
    assert await fetched(puller, 1) == [b"1"]
    await puller.close()
    assert sorted(await fetched(Puller(jetstream, CONSUMER), 2)) == [b"2", b"3"]
    await eventually(lambda: is_empty(jetstream), "all are acknowledged")


async def is_empty(jetstream: JetStream) -> bool:
    return await jetstream.pending(OUTCOMES, "outcomes.>") == 0


async def test_a_message_that_another_takes_is_not_fetched(jetstream: JetStream) -> None:
    taken: list[bytes] = []

    def takes(message: Msg) -> bool:
        if message.data != b"mine":
            return False
        taken.append(message.data)
        return True

    puller = Puller(jetstream, CONSUMER, batch=4, takes=takes)
    await send(jetstream, b"1", b"mine", b"2")
    assert await fetched(puller, 2) == [b"1", b"2"]
    assert taken == [b"mine"]
