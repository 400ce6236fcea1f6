"""Nine thousand of everything on each subject that a service reads, by each user of NATS that may send it.

What other users see of it is logged: how long `/healthz` and a read of a page take meanwhile.
"""

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from google.protobuf.message import Message
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.stack.servers.nats_permissions import Permissions, permissions_of
from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.wire.proofs import PROGRESS_PROOF
from proctor.wire.subjects import MODEL_LISTS, READ_MESSAGES, READ_TEXTS, SubjectMessages
from tests.e2e.harness.entry_points import http
from tests.e2e.harness.run_ends import completed
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.messages.many_items import all_lists_in, entries, filled, is_map, numbers, within
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

MANY = 9_000
POOL = "remote"
RUN = "00000000-0000-4000-8000-000000000000"
REPLY_SECONDS = 60
# A list of models is kept for 20 s, and the other worker may answer first; a message that was on its way to a
# pull that ended is delivered again later.
REFUSAL_SECONDS = 120.0
LARGEST = messaging.MAX_NATS_MESSAGE_BYTES - 1024
REQUESTS = {"bundles", "artifacts", "budgets", "models"}
OTHERS = ("/healthz", "/api/v1/queue")


def address(subject: str) -> str:
    """A subject of the pool and the run, and one of the keys."""
    kind, _, rest = subject.partition(".")
    first = RUN if kind in ("outcomes", "progress", "states") else POOL
    rest = rest.replace("*", first, 1).replace("*", "key")
    last = {"work": f"{messaging.ANY_MODEL}.high.{RUN}", "$KV": messaging.LAST_SWITCH}
    return f"{kind}.{rest}".replace(">", last.get(kind, ""))


def may_publish(permissions: Permissions, subject: str) -> bool:
    return any(_matches(pattern.split("."), subject.split(".")) for pattern in permissions.publish)


def _matches(pattern: list[str], tokens: list[str]) -> bool:
    if pattern[-1] == ">":
        return len(tokens) >= len(pattern) and _matches(pattern[:-1], tokens[: len(pattern) - 1])
    pairs = zip(pattern, tokens, strict=False)
    return len(pattern) == len(tokens) and all(each in ("*", token) for each, token in pairs)


def contents(kind: type[Message]) -> Iterator[bytes]:
    """Messages of a kind, of a run where it has one."""
    named = kind(run_id=RUN).SerializeToString() if "run_id" in kind.DESCRIPTOR.fields_by_name else b""
    descriptor: Any = kind.DESCRIPTOR
    for path in all_lists_in(descriptor):
        proof = work_messages_pb2.DispatchedShard(run_id=RUN)
        proof.samples.extend([work_messages_pb2.SampleRange(count=1)] * 100)
        if is_map(path[-1]):
            yield named + entries(path, MANY)
        elif path[-1].is_packed:
            yield named + numbers(path, MANY)
        elif path[-1].message_type is work_messages_pb2.DispatchProof.DESCRIPTOR:
            wrong = work_messages_pb2.DispatchProof(dispatched=proof.SerializeToString(), hmac=b"x" * 32)
            yield named + within(path, wrong.SerializeToString()) * 250
        else:
            yield named + filled(path, MANY)
            yield named + filled(path, (LARGEST - 100 * len(path)) // 3)
    deep = b""
    for _ in range(MANY // 9):
        deep = b"\x0a" + bytes([len(deep) & 0x7F | 0x80, len(deep) >> 7 & 0x7F]) + deep
    yield from (deep, b"\x0b" * MANY, b"\x08\x01" * MANY, b"\x7a\x00" * (LARGEST // 2))
    yield random.Random(7).randbytes(MANY)


class Senders:
    """A connection of each user, and what the server has refused."""

    def __init__(self, stack: StackHarness) -> None:
        config = json.loads((stack.stack.options.state_dir / "nats" / "nats.conf").read_text())
        self._passwords = {each["user"]: each["password"] for each in config["authorization"]["users"]}
        self._server = stack.stack.nats_url.rpartition("@")[2]
        self.refused: list[str] = []

    async def connect(self, user: str) -> Client:
        client = Client()
        await client.connect(
            f"nats://{user}:{self._passwords[user]}@{self._server}",
            error_cb=self._note,
            inbox_prefix=messaging.inbox_prefix(user),
            pending_size=64 * 1024**2,
        )
        return client

    async def _note(self, error: Exception) -> None:
        self.refused.append(str(error))


@asynccontextmanager
async def others_look(stack: StackHarness) -> AsyncIterator[dict[str, float]]:
    """The longest time that each read of another user took; one that is not answered fails the test."""
    worst = dict.fromkeys(OTHERS, 0.0)

    async def look(path: str) -> None:
        while True:
            began = time.monotonic()
            answer = await http(stack, "GET", path, headers={"x-proctor-user": "another"})
            worst[path] = max(worst[path], time.monotonic() - began)
            assert answer.status == 200, answer
            await asyncio.sleep(0.01)

    async with asyncio.timeout(400), asyncio.TaskGroup() as group:
        looks = [group.create_task(look(path)) for path in OTHERS]
        yield worst
        for each in looks:
            each.cancel()


async def send_to(client: Client, messages: SubjectMessages[Message]) -> int:
    """Requests are answered; a stream refuses some, as a value beyond the bounds of its bucket."""
    subject, sent = address(messages.subject), 0
    is_request = subject.split(".")[0] in REQUESTS
    for content in contents(messages.kind):
        if is_request:
            reply = await client.request(subject, content, timeout=REPLY_SECONDS)
            assert reply.data, subject
        else:
            await client.publish(subject, content, headers={PROGRESS_PROOF: "0" * 64})
            await client.flush(REPLY_SECONDS)
        sent += 1
    return sent


async def answer_lists_of_models(worker: Client, stack: StackHarness) -> int:
    """As a worker of the pool that is asked for its models; another one of them is asked, too."""
    answers = [each for each in contents(MODEL_LISTS.kind) if len(each) >= 2 * MANY][:2]
    for content in answers:

        async def answer(request: Msg, content: bytes = content) -> None:
            await request.respond(content)

        async def is_refused() -> bool:
            answered = await http(stack, "GET", "/api/v1/models")
            assert answered.status == 200, answered
            return "cannot be read" in str(answered.body)

        subscription = await worker.subscribe(address(MODEL_LISTS.subject), cb=answer)
        await eventually(is_refused, "a list of too many models is refused", REFUSAL_SECONDS)
        await subscription.unsubscribe()
        await eventually(lambda: is_listed(stack), "the models of the pool are listed again", REFUSAL_SECONDS)
    return len(answers)


async def is_listed(stack: StackHarness) -> bool:
    return bool((await http(stack, "GET", "/api/v1/models")).body["models"])


def test_every_subject_is_sent_by_somebody() -> None:
    users = permissions_of([POOL])
    for subject in (*(each.subject for each in READ_MESSAGES), *READ_TEXTS):
        assert any(may_publish(user, address(subject)) for user in users.values()), subject
    assert not may_publish(users[messaging.worker_user(POOL)], address(messaging.PROGRESS_OF_ALL_RUNS))


@pytest.mark.thorough
@pytest.mark.timeout(480.0)
async def test_many_parts_of_messages_keep_services_from_nobody() -> None:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(rows=40)) as stack:
            # Its worker answers requests once it has answered one.
            await completed(stack, keyed_order())
            before = {child.name: (child.pid, child.restarts) for child in stack.stack.children.values()}
            senders, sent = Senders(stack), dict[str, int]()
            async with others_look(stack) as worst:
                for user, permissions in permissions_of([POOL]).items():
                    client = await senders.connect(user)
                    for each in READ_MESSAGES:
                        if may_publish(permissions, address(each.subject)):
                            sent[f"{user} {each.subject}"] = await send_to(client, each)
                    for subject in READ_TEXTS:
                        if may_publish(permissions, address(subject)):
                            await client.publish(address(subject), b"9" * LARGEST)
                    if user == messaging.worker_user(POOL):
                        sent[f"{user} {MODEL_LISTS.subject}"] = await answer_lists_of_models(client, stack)
                    with suppress(TimeoutError):
                        await client.close()
                await eventually(lambda: is_drained(stack), "results has read all outcomes", REFUSAL_SECONDS)
                await completed(stack, keyed_order())
            after = {child.name: (child.pid, child.restarts) for child in stack.stack.children.values()}
    logging.getLogger(__name__).info("%s messages; others waited %s s", sum(sent.values()), worst)
    assert {each.partition(" ")[2] for each in sent} == {each.subject for each in READ_MESSAGES}
    assert senders.refused == []
    assert after == before


async def is_drained(stack: StackHarness) -> bool:
    client = Client()
    await client.connect(stack.stack.nats_url)
    try:
        state: Any = (await client.jetstream().stream_info("OUTCOMES")).state
    finally:
        await client.close()
    return bool(state.messages == 0)
