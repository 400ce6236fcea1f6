"""Permissions in the NATS of a local stack, of another account of the machine and of each service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from proctor.stack.servers.nats import NatsServer
from proctor.stack.servers.nats_permissions import authorization_block, password_variable, permissions_of
from proctor.stack.supervision.addresses import choose_addresses, split_address
from proctor.stack.supervision.child import ChildContext, ChildSpec, SupervisedChild
from proctor.stack.supervision.process import Program
from proctor.v1.work_messages_pb2 import ReadBundleResponse
from proctor.values import messaging
from proctor.values.priority import Priority
from services.common.clock import SystemClock
from services.common.nats.bucket import Bucket
from services.common.nats.connection import TRANSIENT_NATS, connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.stream_maker import StreamMaker
from services.common.nats.stream_probes import StreamProbes
from services.common.nats.streams import (
    RUNS_BUCKET,
    heartbeat_bucket,
    outcome_consumer,
    switch_bucket,
    work_consumer,
    work_stream,
)
from services.common.nats.worker_requests import WorkerRequests
from services.worker.consumer.nats import NatsShardSource
from services.worker.consumer.nats_quarantine import NatsQuarantine
from tests.fakes.eventually import eventually
from tests.fakes.pools import provider_pool
from tests.fakes.worker.worker_harness import always, work_shard
from tests.integration.stack.nats_members import member, nats_with_users

WAIT_SECONDS = 0.5
POOLS = ("a", "b")
MINE = work_stream("a").name
OTHERS = work_stream("b").name
POOL = provider_pool("a")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    async with nats_with_users(tmp_path_factory.mktemp("nats"), POOLS) as made:
        yield made


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_connection_without_a_password_is_refused(server: NatsServer) -> None:
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
        ("worker-a", ">"),
        ("worker-a", "outcomes.>"),
        ("worker-a", "work.>"),
        ("worker-a", "work.a.>"),
        ("worker-a", "work.b.>"),
        ("worker-a", "models.b"),
        ("worker-a", "_INBOX_worker-b.>"),
        ("worker-a", "progress.*"),
        ("worker-a", "_INBOX_scheduler.>"),
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
        ("worker-a", "$KV.RUNS.a"),
        ("worker-a", "$KV.QUOTAS.a"),
        ("worker-a", "progress.a"),
        ("worker-a", "states.a"),
        ("worker-a", "$JS.API.STREAM.PURGE.OUTCOMES"),
        ("worker-a", f"$JS.API.STREAM.DELETE.{MINE}"),
        ("worker-a", f"$JS.API.STREAM.UPDATE.{MINE}"),
        ("worker-a", "$JS.API.CONSUMER.CREATE.OUTCOMES.mine"),
        ("worker-a", "$KV.WORKERS_b.w"),
        ("worker-a", "$KV.SWITCHES_b.last"),
        ("worker-a", "$KV.SWITCHES_a.another"),
        ("worker-a", "$KV.QUARANTINE_b.r.1.0.7"),
        ("worker-a", "rates.b.0123456789abcdef"),
        ("worker-a", "rates.a"),
        ("worker-a", "work.b.m.high.r"),
        ("worker-a", f"$JS.API.STREAM.INFO.{OTHERS}"),
        ("worker-a", f"$JS.API.STREAM.MSG.GET.{OTHERS}"),
        ("worker-a", f"$JS.API.DIRECT.GET.{OTHERS}"),
        ("worker-a", f"$JS.API.DIRECT.GET.{OTHERS}.work.b.m.high.r"),
        ("worker-a", f"$JS.API.CONSUMER.CREATE.{OTHERS}"),
        ("worker-a", f"$JS.API.CONSUMER.CREATE.{OTHERS}.mine.work.b.m.high.>"),
        ("worker-a", f"$JS.API.CONSUMER.DURABLE.CREATE.{OTHERS}.mine"),
        ("worker-a", f"$JS.API.CONSUMER.DELETE.{MINE}.a-m-high"),
        ("worker-a", f"$JS.ACK.{OTHERS}.b-m-high.1.1.1.1.0"),
        # The form with a domain and an account, which the server takes as well.
        ("worker-a", f"$JS.ACK._.hash.{OTHERS}.b-m-high.1.1.1.1.0.x"),
        ("worker-a", "$JS.FC.OUTCOMES.any.x"),
        ("worker-a", f"$JS.API.DIRECT.GET.{MINE}.work.a.m.high.r"),
        ("worker-a", "$JS.API.DIRECT.GET.KV_WORKERS_b.$KV.WORKERS_b.w"),
        ("worker-a", "$JS.API.STREAM.MSG.GET.KV_WORKERS_b"),
        ("worker-a", "$JS.API.STREAM.MSG.GET.KV_SWITCHES_b"),
        ("worker-a", "$JS.API.CONSUMER.CREATE.KV_WORKERS_b"),
        ("worker-a", "$JS.API.STREAM.PURGE.KV_WORKERS_a"),
        ("worker-a", "$JS.API.STREAM.UPDATE.KV_WORKERS_a"),
        ("worker-a", "$JS.API.CONSUMER.DELETE.OUTCOMES.results"),
        ("worker-a", "$JS.API.CONSUMER.PAUSE.OUTCOMES.results"),
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
    scheduler, worker, results = [await member(server, user) for user in ("scheduler", "worker-a", "results")]
    source = NatsShardSource(JetStream(worker.client), POOL, SystemClock(), 30, always)
    publish = scheduler.client.jetstream().publish
    await publish(f"work.a.{messaging.ANY_MODEL}.high.r", work_shard(1, [7]).SerializeToString())
    shard = await source.pull(None, Priority.HIGH)
    assert shard is not None
    await shard.forward()
    shard = await source.pull(None, Priority.HIGH)
    assert shard is not None
    await shard.acknowledge()
    await source.work_of([])
    await worker.client.jetstream().publish("outcomes.r", b"an outcome")
    recorded = await Puller(JetStream(results.client), outcome_consumer(30)).fetch(1, 5)
    assert [message.data for message in recorded] == [b"an outcome"]
    await recorded[0].ack_sync()
    await Bucket(JetStream(scheduler.client), RUNS_BUCKET).put("r", b"running")
    assert await Bucket(JetStream(worker.client), RUNS_BUCKET).entries() == {"r": b"running"}
    await Bucket(JetStream(worker.client), heartbeat_bucket("a")).put("w", b"alive")
    switches = Bucket(JetStream(worker.client), switch_bucket("a"))
    last = messaging.LAST_SWITCH
    assert await switches.update(last, b"w", revision=await switches.revision(last))
    assert not await switches.update(last, b"w", revision=0)
    quarantine = NatsQuarantine(JetStream(worker.client), "a")
    assert [await quarantine.begin(shard.shard, 7) for _ in range(2)] == [0, 1]
    await quarantine.end(shard.shard, 7)
    assert await quarantine.begin(shard.shard, 7) == 0
    for reader in (scheduler, worker):
        assert await Bucket(JetStream(reader.client), heartbeat_bucket("a")).entries() == {"w": b"alive"}
    await Bucket(JetStream(worker.client), heartbeat_bucket("a")).delete("w")
    for each in (scheduler, worker, results):
        assert not await each.is_refused(), each.refused
        await each.client.close()


async def test_a_worker_can_neither_read_nor_acknowledge_work_of_another_pool(server: NatsServer) -> None:
    scheduler, thief, owner = [await member(server, user) for user in ("scheduler", "worker-a", "worker-b")]
    subject = "work.b.m.high.r"
    await scheduler.client.jetstream().publish(subject, b"of pool b")
    consumer = work_consumer("b", "m", Priority.HIGH, 30)
    await JetStream(owner.client).make_consumer(consumer)
    stolen = JetStream(thief.client)
    assert await Puller(stolen, consumer).fetch(1, WAIT_SECONDS) == []
    assert await Puller(stolen, replace(consumer, durable="mine")).fetch(1, WAIT_SECONDS) == []
    # A consumer of its own stream, with the subject of the other.
    through_mine = replace(consumer, stream=work_stream("a"), durable="mine")
    assert await Puller(stolen, through_mine).fetch(1, WAIT_SECONDS) == []
    with pytest.raises(TRANSIENT_NATS):
        await stolen.sent_at(work_stream("b"), subject)
    [message] = await Puller(JetStream(owner.client), consumer).fetch(1, 5)
    assert message.metadata.num_delivered == 1
    await thief.client.publish(message.reply, b"+ACK")
    assert await thief.is_refused()
    left = JetStream(scheduler.client)
    assert await left.pending(work_stream("b"), subject) == 1
    await message.ack_sync()
    assert await left.pending(work_stream("b"), subject) == 0
    for each in (scheduler, thief, owner):
        await each.client.close()


async def test_the_printed_users_are_those_of_the_local_stack(server: NatsServer, tmp_path: Path) -> None:
    """A server that reads the block of `proctor nats-users` refuses and allows the same."""
    [address] = choose_addresses(1)
    block = tmp_path / "users.conf"
    block.write_text(authorization_block(POOLS))
    passwords = {user: f"of-{user}" for user in permissions_of(POOLS)}
    variables = {password_variable(user): word for user, word in passwords.items()}
    program = (server.program, "-a", "127.0.0.1", "-p", address.rpartition(":")[2], "-c", str(block))
    made = replace(server, address=address, passwords=passwords)

    async def lets_in() -> bool:
        try:
            worker = await member(made, "worker-b")
        except TRANSIENT_NATS:
            return False
        await worker.client.close()
        return True

    child = SupervisedChild(
        ChildSpec("nats", Program(program, variables), lets_in),
        ChildContext(tmp_path / "log", report=print, on_change=lambda: None),
    )
    try:
        await child.first_ready
        worker = await member(made, "worker-b")
        await worker.client.publish("work.b.m.high.r", b"mine")
        assert not await worker.is_refused(), worker.refused
        await worker.client.publish("work.a.m.high.r", b"another's")
        assert await worker.is_refused()
        await worker.client.close()
    finally:
        await child.stop()


async def test_the_scheduler_alone_probes_streams(server: NatsServer) -> None:
    scheduler, worker = await member(server, "scheduler"), await member(server, "worker-a")
    maker, probes = StreamMaker(scheduler.client, POOLS), StreamProbes(scheduler.client)
    await maker.make_missing()
    assert {"OUTCOMES", "WORK_a", "KV_RUNS"} < {*maker.probed}
    await probes.probe(maker.probed)
    assert probes.refused == {}
    assert not await scheduler.is_refused(), scheduler.refused
    await worker.client.publish("probes.OUTCOMES", b"")
    assert await worker.is_refused()
    for each in (scheduler, worker):
        await each.client.close()


async def test_who_is_asked_may_answer_and_only_then(server: NatsServer) -> None:
    scheduler, worker = await member(server, "scheduler"), await member(server, "worker-a")

    async def answer(message: Msg) -> None:
        await message.respond(b"my models")

    await worker.client.subscribe("models.a", cb=answer)
    await worker.client.flush()
    reply = await scheduler.client.request("models.a", b"", timeout=5)
    assert reply.data == b"my models"
    with pytest.raises(NoRespondersError):
        await scheduler.client.request("models.nobody", b"", timeout=5)
    await worker.client.publish("_INBOX_scheduler.guessed", b"forged")
    assert await worker.is_refused()
    await eventually(lambda: bool(worker.refused), "the refusal is reported")
    for each in (scheduler, worker):
        await each.client.close()


class FileOfRequest:
    async def respond(self, data: bytes) -> ReadBundleResponse:
        return ReadBundleResponse(content=data)

    def refuse(self, problem: str, error: Exception) -> ReadBundleResponse:
        raise AssertionError(problem) from error


FILE = ReadBundleResponse(content=b"it").SerializeToString()


@pytest.mark.parametrize("subject", [messaging.ALL_BUNDLES, messaging.ALL_ARTIFACTS, messaging.ALL_BUDGETS])
async def test_the_scheduler_answers_no_worker_outside_the_inboxes_of_its_pool(
    server: NatsServer, subject: str
) -> None:
    """A worker may name any reply subject, and the scheduler may send to more of them than the worker."""
    scheduler, thief = await member(server, "scheduler"), await member(server, "worker-a")
    connection = await connect_nats(server.url("scheduler"), "scheduler")
    asked = subject.replace("*", "a")

    answering = asyncio.create_task(WorkerRequests(connection, subject).answer(FileOfRequest()))
    try:
        assert await eventually_answered(thief.client, asked) == FILE
        await scheduler.client.jetstream().publish("work.b.m.high.r", b"of pool b")
        before = await scheduler.client.jetstream().stream_info(OTHERS)
        forged = ("work.b.m.high.r", "$KV.RUNS.r", f"$JS.API.STREAM.PURGE.{OTHERS}", "_INBOX_worker-b.x.y")
        received = await scheduler.client.subscribe("states.*")
        for reply in ("states.r", *forged, f"$JS.API.STREAM.DELETE.{OTHERS}"):
            await thief.client.publish(asked, b"it", reply=reply)
        # The answer to a later request shows that these are dropped.
        assert await eventually_answered(thief.client, asked) == FILE
        await connection.flush()
        after = await scheduler.client.jetstream().stream_info(OTHERS)
        assert (after.state.messages, after.state.last_seq) == (before.state.messages, before.state.last_seq)
        assert received.pending_msgs == 0
        assert not await thief.is_refused(), thief.refused
    finally:
        answering.cancel()
        for client in (connection, scheduler.client, thief.client):
            await client.close()


async def eventually_answered(client: Client, subject: str) -> bytes:
    """Asks until there is a subscriber."""
    async with asyncio.timeout(20):
        while True:
            with suppress(NoRespondersError):
                return (await client.request(subject, b"it", timeout=5)).data


async def test_what_remains_open_is_what_the_decision_says(server: NatsServer) -> None:
    """JetStream answers to any reply subject (decision 0026)."""
    scheduler, worker, owner = [await member(server, user) for user in ("scheduler", "worker-a", "worker-b")]
    spec = work_consumer("a", "remains", Priority.HIGH, 30)
    await JetStream(worker.client).make_consumer(spec)
    others = work_consumer("b", "remains", Priority.HIGH, 30)
    await JetStream(owner.client).make_consumer(others)
    pulls = f"$JS.API.CONSUMER.MSG.NEXT.{MINE}.{spec.durable}"
    looked, runs = JetStream(scheduler.client), Bucket(JetStream(scheduler.client), RUNS_BUCKET)

    async def bring(payload: bytes, reply: str) -> None:
        await worker.client.jetstream().publish("work.a.remains.high.r", payload)
        await worker.client.publish(pulls, b"1", reply=reply)

    # To core subjects: a message of its own, as it is.
    reports = await scheduler.client.subscribe("progress.remains")
    await scheduler.client.flush()
    await bring(b"forged", "progress.remains")
    assert (await reports.next_msg(timeout=20)).data == b"forged"
    # Into streams and buckets: what the server itself answers, and no message of a consumer.
    await bring(b"forged", "work.b.remains.high.r")
    await bring(b"forged", "$KV.RUNS.forged")
    for call in ("PURGE", "DELETE"):
        await bring(b"", f"$JS.API.STREAM.{call}.{OTHERS}")
    await worker.client.publish(f"$JS.API.STREAM.INFO.{MINE}", b"", reply="$KV.RUNS.answered")

    async def is_answered() -> bool:
        return (await runs.get("answered") or b"").startswith(b'{"type":')

    await eventually(is_answered, "an answer of the server is in the bucket")
    assert await runs.get("forged") is None
    assert await looked.pending(work_stream("b"), "work.b.remains.>") == 0
    assert not await worker.is_refused(), worker.refused
    # Not to what acknowledges.
    await scheduler.client.jetstream().publish("work.b.remains.high.r", b"of pool b")
    [message] = await Puller(JetStream(owner.client), others).fetch(1, 5)
    await bring(b"+TERM", message.reply)
    assert await worker.is_refused()
    assert await looked.pending(work_stream("b"), "work.b.remains.>") == 1
    await message.ack_sync()
    for each in (scheduler, worker, owner):
        await each.client.close()
