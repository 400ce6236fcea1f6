"""Pulls work messages from the stream of the pool, and acknowledges, nacks or forwards them there."""

import asyncio
import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.values.providers.pool import Pool
from proctor.wire.subjects import WORK
from services.common.bounded_messages import read_message
from services.common.clock import Clock
from services.common.nats import streams
from services.common.nats.connection import TRANSIENT_NATS
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import ConsumerSpec
from services.common.structured_logs import get_logger
from services.common.traces import TRACEPARENT, continued_trace
from services.worker.consumer.nats_pull import LongPull
from services.worker.consumer.ports import ModelWork
from services.worker.consumer.proto import only_samples, shard_from_proto
from services.worker.execution.shard import Shard
from services.worker.settings import DEFAULT_ACK_WAIT_SECONDS

log = get_logger()


class NatsShardMessage:
    """Acknowledgements are not confirmed: a lost one only causes a redelivery."""

    def __init__(self, message: Msg, jetstream: JetStream, clock: Clock, *, completes_text: bool) -> None:
        self._message = message
        self._jetstream = jetstream
        self._clock = clock
        # A worker of the pool that nobody trusts may send one, too.
        self._work = read_message(WORK.kind, message.data, WORK.max_bytes)
        sent_at = message.metadata.timestamp
        self.shard = shard_from_proto(self._work, sent_at, completes_text=completes_text)
        headers = message.headers or {}
        self.message_id = headers.get("Nats-Msg-Id", "")
        self.trace = headers.get(TRACEPARENT, "")
        # One id for all tries to publish its rest: a try that seemed to fail may have reached the stream.
        self._rest_id = uuid.uuid4().hex
        # The server counts deliveries of this message; the message carries those of its predecessors.
        self.failed_deliveries = self._work.failed_deliveries + message.metadata.num_delivered - 1

    async def acknowledge(self) -> None:
        await self._message.ack()

    async def nack(self, delay_seconds: float) -> None:
        await self._message.nak(delay_seconds)

    async def terminate(self) -> None:
        await self._message.term()

    async def forward(self) -> None:
        """Forwards it to the worker that pulls next. This does not count as a failed delivery."""
        samples = [sample.number for sample in self.shard.samples]
        await self.send_rest(samples, failed_deliveries=self.failed_deliveries)
        # After the publish. A crash in between leaves the shard twice, the other order not at all.
        await self.acknowledge()

    async def extend_ack_deadline(self) -> None:
        await self._message.in_progress()

    async def send_rest(self, samples: Sequence[int], *, failed_deliveries: int) -> None:
        payload = only_samples(self._work, samples, self._left, failed_deliveries=failed_deliveries)
        await self._publish(payload, messaging.rest_message_id(*self._dispatch, self._rest_id))

    async def send_single(self, sample: int) -> None:
        payload = only_samples(self._work, (sample,), self._left, failed_deliveries=0)
        await self._publish(payload, messaging.single_message_id(*self._dispatch, sample))

    @property
    def _left(self) -> timedelta:
        return self.shard.deadline - self._clock.now()

    @property
    def _dispatch(self) -> tuple[str, int, int, int]:
        return self.shard.run_id, self.shard.epoch, self.shard.number, self.shard.attempt

    async def _publish(self, payload: bytes, message_id: str) -> None:
        with continued_trace(self.trace):
            await self._jetstream.publish(self._message.subject, payload, message_id)


class NatsShardSource:
    """One consumer per model and priority; those of a model that is not loaded any more stay unused.

    Only shards that `may_start` are forwarded to other workers.
    """

    def __init__(
        self,
        jetstream: JetStream,
        pool: Pool,
        clock: Clock,
        ack_wait_seconds: float,
        may_start: Callable[[Shard], bool],
    ) -> None:
        self._may_start = may_start
        self._jetstream = jetstream
        self._clock = clock
        self._pool = pool
        self._stream = streams.work_stream(pool.name)
        self._ack_wait_seconds = ack_wait_seconds
        self._pulls: dict[tuple[str | None, Priority], LongPull] = {}

    def extension_seconds(self) -> float:
        """How often ack deadlines are extended: twice before the first consumer's runs out.

        A consumer that existed keeps its own time, whatever the settings say.
        """
        waits = [self._jetstream.ack_wait_seconds(self._consumer(*each)) for each in self._pulls]
        # A pull may meet a consumer that was made with a shorter time, which is most often the default.
        return min(*waits, self._ack_wait_seconds, DEFAULT_ACK_WAIT_SECONDS) / 3

    async def pull(self, model: str | None, priority: Priority) -> NatsShardMessage | None:
        pull = self._pulls.get((model, priority))
        if pull is None:
            pull = LongPull(self._jetstream, self._consumer(model, priority), self._forward)
            self._pulls[model, priority] = pull
        return await self._parse(await pull.fetch())

    async def hold(self, model: str | None, priority: Priority) -> NatsShardMessage | None:
        pull = self._pulls.get((model, priority))
        return None if pull is None else await self._parse(pull.hold())

    async def _forward(self, message: Msg) -> None:
        """Repeats while the stream is full; after an outage the server delivers the message again itself."""
        shard, reconnects = await self._parse(message), self._jetstream.reconnects
        try:
            while shard is not None and self._jetstream.reconnects == reconnects:
                if not self._may_start(shard.shard):
                    await shard.terminate()
                    return
                try:
                    # A third, so that the deadline is extended before the server redelivers.
                    async with asyncio.timeout(self.extension_seconds()):
                        await shard.forward()
                        return
                except TimeoutError:
                    log.info("shard not forwarded yet", run_id=shard.shard.run_id, shard=shard.shard.number)
                    await shard.extend_ack_deadline()
        except TRANSIENT_NATS as error:
            log.info("shard not forwarded", why="it is redelivered", error=repr(error))

    async def work_of(self, models: Collection[str]) -> Sequence[ModelWork]:
        """One request where the pool has no work."""
        try:
            subjects = await self._jetstream.pending_by_subject(
                self._stream, messaging.work_of_pool(self._pool.name)
            )
            # Most models have no work: only those with a subject cost a request for each priority.
            tokens = {messaging.token_of_work(subject) for subject in subjects}
            found = [await self._work_of(model) for model in models if messaging.model_token(model) in tokens]
        except TRANSIENT_NATS as error:
            log.info("work unknown", error=repr(error))
            return ()
        return [work for work in found if work is not None]

    async def _work_of(self, model: str) -> ModelWork | None:
        subject = messaging.work_of_model(self._pool.name, messaging.model_token(model))
        undelivered = [
            await self._jetstream.undelivered(self._consumer(model, priority)) for priority in Priority
        ]
        sent = [each.since for each in undelivered if each.since is not None]
        # If each is delivered, all are in flight, maybe on a worker that died.
        since = min(sent) if sent else await self._jetstream.sent_at(self._stream, subject)
        return None if since is None else ModelWork(model, sum(each.count for each in undelivered), since)

    def _consumer(self, model: str | None, priority: Priority) -> ConsumerSpec:
        token = messaging.ANY_MODEL if model is None else messaging.model_token(model)
        return streams.work_consumer(self._pool.name, token, priority, self._ack_wait_seconds)

    async def _parse(self, message: Msg | None) -> NatsShardMessage | None:
        if message is None:
            return None
        try:
            completes_text = self._pool.completes_text
            return NatsShardMessage(message, self._jetstream, self._clock, completes_text=completes_text)
        except DecodeError as error:
            log.error("unreadable work message terminated", subject=message.subject, error=str(error))
            # Not nak: it would be unreadable for every worker, and come back for ever.
            await message.term()
            return None
