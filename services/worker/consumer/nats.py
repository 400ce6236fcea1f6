"""Pulls work messages of the pool from the stream WORK and settles them there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from services.common import subjects
from services.common.jetstream import TRANSIENT_NATS, ConsumerSpec, JetStream, Puller
from services.common.structured_logs import get_logger
from services.worker.consumer.ports import Backlog
from services.worker.consumer.proto import only_samples, shard_from_proto
from services.worker.execution.shard import faults_of, rest_message_id, single_message_id
from services.worker.pools.pool import Pool

_PULL_SECONDS = 1.0

log = get_logger()


class NatsShardMessage:
    """One delivery. Acknowledgements are not confirmed: a lost one only brings the message again."""

    def __init__(self, message: Msg, jetstream: JetStream, *, completes_text: bool) -> None:
        self._message = message
        self._jetstream = jetstream
        self._work = work_messages_pb2.WorkShard.FromString(message.data)
        self.shard = shard_from_proto(self._work, completes_text=completes_text)
        self.message_id = (message.headers or {}).get("Nats-Msg-Id", "")
        self.faults = faults_of(self.message_id) + message.metadata.num_delivered - 1

    async def acknowledge(self) -> None:
        await self._message.ack()

    async def give_back(self, delay_seconds: float) -> None:
        await self._message.nak(delay_seconds)

    async def drop(self) -> None:
        await self._message.term()

    async def keep(self) -> None:
        await self._message.in_progress()

    async def send_rest(self, samples: Sequence[int], *, faults: int) -> None:
        await self._send(samples, rest_message_id(self.shard, uuid.uuid4().hex, faults))

    async def send_single(self, sample: int) -> None:
        await self._send((sample,), single_message_id(self.shard, sample))

    async def _send(self, samples: Sequence[int], message_id: str) -> None:
        payload = only_samples(self._work, samples)
        await self._jetstream.publish(subjects.WORK, self._message.subject, payload, message_id)


class NatsShardSource:
    """One consumer per model and priority; those of a model that is swapped away are left alone."""

    def __init__(self, jetstream: JetStream, pool: Pool, ack_wait_seconds: float) -> None:
        self.priorities = subjects.PRIORITIES
        self._jetstream = jetstream
        self._pool = pool
        self._ack_wait_seconds = ack_wait_seconds
        self._pullers: dict[tuple[str | None, int], Puller] = {}

    async def pull(self, model: str | None, rank: int) -> Sequence[NatsShardMessage]:
        """One message at a time: a larger fetch waits until it is full."""
        puller = self._pullers.get((model, rank)) or self._make_puller(model, rank)
        messages = [await self._read(message) for message in await puller.fetch(1, _PULL_SECONDS)]
        return [message for message in messages if message is not None]

    async def backlog(self, model: str) -> Backlog | None:
        try:
            return await self._backlog(model)
        except TRANSIENT_NATS as error:
            log.info("cannot tell what waits", model=model, error=repr(error))
            return None

    async def _backlog(self, model: str) -> Backlog | None:
        subject = f"work.{self._pool.name}.{subjects.model_token(model)}.>"
        if not await self._jetstream.pending(subjects.WORK, subject):
            return None
        waits = [await self._jetstream.waiting(self._consumer(model, rank)) for rank in self._ranks]
        sent = [wait.since for wait in waits if wait.since is not None]
        # Nothing waits, so all of it is held; by nobody who lives, maybe.
        since = min(sent) if sent else await self._jetstream.sent_at(subjects.WORK, subject)
        return None if since is None else Backlog(model, sum(wait.count for wait in waits), since)

    @property
    def _ranks(self) -> range:
        return range(len(self.priorities))

    def _consumer(self, model: str | None, rank: int) -> ConsumerSpec:
        token = subjects.ANY_MODEL if model is None else subjects.model_token(model)
        return subjects.work_consumer(self._pool.name, token, self.priorities[rank], self._ack_wait_seconds)

    def _make_puller(self, model: str | None, rank: int) -> Puller:
        puller = self._pullers[model, rank] = self._jetstream.puller(self._consumer(model, rank))
        return puller

    async def _read(self, message: Msg) -> NatsShardMessage | None:
        try:
            return NatsShardMessage(message, self._jetstream, completes_text=self._pool.completes_text)
        except DecodeError as error:
            log.error("unreadable work message dropped", subject=message.subject, error=str(error))
            await message.term()
            return None
