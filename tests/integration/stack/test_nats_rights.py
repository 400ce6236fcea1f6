"""Who may do what in the NATS of a local stack, as another account of the machine and as each service."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from proctor.stack.servers.nats import NatsServer, prepare_nats
from proctor.stack.supervision.addresses import choose_addresses, split_address
from proctor.stack.supervision.child import SupervisedChild, Surroundings
from proctor.values.messaging import inbox_prefix
from services.common.nats.bucket import Bucket
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.streams import (
    RUNS_BUCKET,
    WORK,
    WORKERS_BUCKET,
    StreamLimits,
    StreamMaker,
    outcome_consumer,
)
from tests.fakes.eventually import eventually

WAIT_SECONDS = 0.5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    folder = tmp_path_factory.mktemp("nats")
    [address] = choose_addresses(1)
    made = prepare_nats(folder, address)
    around = Surroundings(folder / "log", report=print, on_change=lambda: None)
    child = SupervisedChild(made.child(), around)
    try:
        await child.first_ready
        scheduler = await connect_nats(made.url("scheduler"), "scheduler")
        await StreamMaker(scheduler, StreamLimits()).make_missing()
        await scheduler.close()
        yield made
    finally:
        await child.stop()


class Member:
    """A connection as one user, and what the server has forbidden it."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.client = Client()

    async def _note(self, error: Exception) -> None:
        self.refused.append(str(error).lower())

    async def connect(self, server: NatsServer, user: str) -> None:
        await self.client.connect(server.url(user), error_cb=self._note, inbox_prefix=inbox_prefix(user))

    async def is_refused(self) -> bool:
        """Whether the server has forbidden something by the time that it answers a ping."""
        await self.client.flush()
        await asyncio.wait_for(self.client.flush(), WAIT_SECONDS * 4)
        return any("permissions violation" in each for each in self.refused)


async def member(server: NatsServer, user: str) -> Member:
    made = Member()
    await made.connect(server, user)
    return made


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_nobody_is_let_in_without_a_password(server: NatsServer) -> None:
    host, port = split_address(server.address)
    reader, writer = await asyncio.open_connection(host, port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false}\r\nSUB > 1\r\nPING\r\n')
    assert await reader.readline() == b"-ERR 'Authorization Violation'\r\n"
    writer.close()
    await writer.wait_closed()


async def test_only_we_may_read_the_passwords(server: NatsServer) -> None:
    assert server.config_file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("worker", ">"),
        ("worker", "outcomes.>"),
        ("worker", "work.>"),
        ("worker", "progress.*"),
        ("worker", "_INBOX_scheduler.>"),
        ("results", "work.>"),
        ("results", "_INBOX.>"),
        ("scheduler", "outcomes.>"),
    ],
)
async def test_a_service_cannot_listen_to_what_is_not_its_own(
    server: NatsServer, user: str, subject: str
) -> None:
    listening = await member(server, user)
    await listening.client.subscribe(subject)
    assert await listening.is_refused()
    await listening.client.close()


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("worker", "$KV.RUNS.a"),
        ("worker", "$KV.QUOTAS.a"),
        ("worker", "progress.a"),
        ("worker", "changes.a"),
        ("worker", "$JS.API.STREAM.PURGE.OUTCOMES"),
        ("worker", "$JS.API.STREAM.DELETE.WORK"),
        ("worker", "$JS.API.STREAM.UPDATE.WORK"),
        ("worker", "$JS.API.CONSUMER.CREATE.OUTCOMES.mine"),
        ("results", "outcomes.a"),
        ("results", "work.a.b.high.c"),
        ("results", "$KV.RUNS.a"),
        ("results", "$JS.API.STREAM.PURGE.OUTCOMES"),
        ("scheduler", "outcomes.a"),
        ("scheduler", "progress.a"),
    ],
)
async def test_a_service_cannot_send_what_is_not_its_own(server: NatsServer, user: str, subject: str) -> None:
    sending = await member(server, user)
    await sending.client.publish(subject, b"forged")
    assert await sending.is_refused()
    await sending.client.close()


async def test_each_service_does_its_part(server: NatsServer) -> None:
    scheduler, worker, results = [await member(server, user) for user in ("scheduler", "worker", "results")]
    work, outcomes = JetStream(worker.client), JetStream(results.client)
    await scheduler.client.jetstream().publish("work.p.m.high.r", b"a shard")
    await scheduler.client.jetstream().add_consumer(WORK.name, durable_name="p-m-high")
    pulling = await worker.client.jetstream().pull_subscribe_bind("p-m-high", WORK.name)
    [shard] = await pulling.fetch(1, timeout=5)
    await shard.ack()
    await worker.client.jetstream().publish("outcomes.r", shard.data)
    puller = Puller(outcomes, outcome_consumer(30))
    recorded = await puller.fetch(1, 5)
    assert [message.data for message in recorded] == [b"a shard"]
    await recorded[0].ack_sync()
    await Bucket(JetStream(scheduler.client), RUNS_BUCKET).put("r", b"running")
    assert await Bucket(work, RUNS_BUCKET).entries() == {"r": b"running"}
    await Bucket(work, WORKERS_BUCKET).put("w", b"alive")
    assert await Bucket(JetStream(scheduler.client), WORKERS_BUCKET).entries() == {"w": b"alive"}
    for each in (scheduler, worker, results):
        assert not await each.is_refused(), each.refused
        await each.client.close()


async def test_who_is_asked_may_answer_and_only_then(server: NatsServer) -> None:
    scheduler, worker = await member(server, "scheduler"), await member(server, "worker")

    async def answer(message: Msg) -> None:
        await message.respond(b"my models")

    await worker.client.subscribe("models.p", cb=answer)
    await worker.client.flush()
    reply = await scheduler.client.request("models.p", b"", timeout=5)
    assert reply.data == b"my models"
    with pytest.raises(NoRespondersError):
        await scheduler.client.request("models.nobody", b"", timeout=5)
    await worker.client.publish("_INBOX_scheduler.guessed", b"forged")
    assert await worker.is_refused()
    await eventually(lambda: bool(worker.refused), "the refusal is told")
    for each in (scheduler, worker):
        await each.client.close()
