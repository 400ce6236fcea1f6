"""JetStream over outages and wiped streams. What is missing is awaited: only `StreamMaker` makes streams."""

import asyncio
import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from nats.aio.client import Client
from nats.errors import MaxPayloadError
from nats.js import api
from nats.js.errors import APIError, BadRequestError, NotFoundError
from nats.js.kv import KeyValue

from services.common.errors import MessageTooLarge
from services.common.nats.connection import (
    FIRST_BACKOFF_SECONDS,
    MAX_BACKOFF_SECONDS,
    REQUEST_SECONDS,
    TRANSIENT_NATS,
)
from services.common.nats.specs import BucketSpec, ConsumerSpec, StreamSpec
from services.common.structured_logs import error_text, get_logger
from services.common.traces import TRACEPARENT, current_trace

log = get_logger()

MESSAGE_ID = "Nats-Msg-Id"
# Short: a publish into an outage is not answered, and repeating it under its id does no harm.
_PUBLISH_SECONDS = 2.0


# Fields of a consumer that decide what is delivered, and when again.
_COMPARED = ("filter_subject", "ack_wait", "max_deliver", "max_ack_pending", "max_waiting")


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Messages of a consumer that were never delivered, and when the first of them was sent."""

    count: int
    since: datetime | None = None


class JetStream:
    """Streams, consumers and buckets of one connection.

    A quiet watch asks every `bucket_check_seconds` whether its bucket was made anew. Workers ask rarely:
    there may be thousands.
    """

    def __init__(self, connection: Client, *, bucket_check_seconds: float = 1.0) -> None:
        self.connection = connection
        self.bucket_check_seconds = bucket_check_seconds
        self._js = connection.jetstream(timeout=REQUEST_SECONDS)
        # By the name of a consumer that this connection has made or found.
        self._ack_waits: dict[str, float] = {}

    @property
    def reconnects(self) -> int:
        """How often the connection was made again."""
        return self.connection.stats["reconnects"]

    async def stream_generation(self, specs: Iterable[StreamSpec]) -> str:
        """Changes when one of the streams is made anew, which means that messages were lost.

        Raises one of TRANSIENT_NATS where a stream has no leader just now.
        """
        # One request for all streams, whatever their number.
        found = {info.config.name: info.created for info in await self._js.streams_info()}
        return " ".join([str(found.get(spec.name) or await self._created(spec)) for spec in specs])

    async def _created(self, spec: StreamSpec) -> datetime | str | None:
        """Asks for one stream: a cluster leaves streams without a leader out of its list."""
        try:
            return (await self._js.stream_info(spec.name)).created
        except NotFoundError:
            return "missing"

    async def publish(self, subject: str, payload: bytes, message_id: str) -> None:
        """Returns when the stream holds the message; repeats over outages, a full and a missing stream.

        A message over the server's limit is raised at once, as `MessageTooLarge`. The trace travels along.
        """
        pause = FIRST_BACKOFF_SECONDS
        headers = {MESSAGE_ID: message_id}
        if trace := current_trace():
            headers[TRACEPARENT] = trace
        while True:
            try:
                await self._js.publish(subject, payload, timeout=_PUBLISH_SECONDS, headers=headers)
            except MaxPayloadError as error:
                raise MessageTooLarge(
                    f"A message of {len(payload)} bytes is too large to be sent: {error}"
                ) from error
            except TRANSIENT_NATS as error:
                log.info("publish repeated", subject=subject, error=error_text(error))
                await asyncio.sleep(pause)
                # The message id lets the stream drop what an unanswered try has stored.
                pause = min(pause * 2, MAX_BACKOFF_SECONDS)
            else:
                return

    async def pending(self, spec: StreamSpec, subject_filter: str) -> int:
        """Messages in the stream under the subjects: undelivered, or delivered and not acknowledged."""
        return sum((await self.pending_by_subject(spec, subject_filter)).values())

    async def pending_by_subject(self, spec: StreamSpec, subject_filter: str) -> Mapping[str, int]:
        """Messages as `pending` counts them, for each subject that has any."""
        try:
            info = await self._js.stream_info(spec.name, subjects_filter=subject_filter)
        except NotFoundError:
            return {}
        return info.state.subjects or {}

    async def undelivered(self, spec: ConsumerSpec) -> Undelivered:
        """Messages of a consumer not delivered yet; everything under its subjects before its first pull."""
        try:
            info = await self._js.consumer_info(spec.stream.name, spec.durable)
        except NotFoundError:
            count, delivered = await self.pending(spec.stream, spec.filter_subject), 0
        else:
            count, delivered = info.num_pending or 0, info.delivered.stream_seq if info.delivered else 0
        if not count:
            return Undelivered(0)
        return Undelivered(count, await self.sent_at(spec.stream, spec.filter_subject, after=delivered))

    async def sent_at(self, spec: StreamSpec, subject_filter: str, *, after: int = 0) -> datetime | None:
        """When the first message under the subjects was sent that comes after one of the stream."""
        try:
            # `next`: the sequence itself may be another subject's, or acknowledged and gone.
            message = await self._js.get_msg(spec.name, seq=after + 1, subject=subject_filter, next=True)
        except NotFoundError:
            return None
        return message.time

    async def purge(self, spec: StreamSpec, subject_filter: str) -> None:
        """Removes what waits under the subjects."""
        with contextlib.suppress(NotFoundError):
            await self._js.purge_stream(spec.name, subject=subject_filter)

    async def max_bytes(self, spec: StreamSpec) -> float:
        """The present limit of the stream; infinite without a limit or a stream."""
        try:
            limit = (await self._js.stream_info(spec.name)).config.max_bytes or 0
        except NotFoundError:
            limit = 0
        return limit if limit > 0 else math.inf

    async def make_consumer(self, spec: ConsumerSpec) -> None:
        """Makes the consumer if there is none. One that exists is left alone."""
        wanted = _consumer_config(spec)
        try:
            found = (await self._js.consumer_info(spec.stream.name, spec.durable)).config
        except NotFoundError:
            found = await self._create(spec, wanted)
        is_known = spec.durable in self._ack_waits
        self._ack_waits[spec.durable] = found.ack_wait or spec.ack_wait_seconds
        differing = [name for name in _COMPARED if getattr(wanted, name) != getattr(found, name)]
        if differing and not is_known:
            hint = "delete it to have it made anew"
            log.warning(
                "consumer differs from the settings", consumer=spec.durable, fields=differing, hint=hint
            )

    def ack_wait_seconds(self, spec: ConsumerSpec) -> float:
        """How long the server waits for acknowledgements: that of the consumer, once this has seen it."""
        return self._ack_waits.get(spec.durable, spec.ack_wait_seconds)

    async def _create(self, spec: ConsumerSpec, config: api.ConsumerConfig) -> api.ConsumerConfig:
        """The consumer as it is afterwards, if another client made it just now under other settings."""
        request = {"stream_name": spec.stream.name, "config": config.as_dict(), "action": "create"}
        subject = f"$JS.API.CONSUMER.CREATE.{spec.stream.name}.{spec.durable}.{spec.filter_subject}"
        # Not by the library: what it sends changes a consumer that exists.
        reply = await self.connection.request(subject, json.dumps(request).encode(), timeout=REQUEST_SECONDS)
        answer = json.loads(reply.data)
        try:
            if "error" in answer:
                raise APIError.from_error(answer["error"])
            info: api.ConsumerInfo = api.ConsumerInfo.from_response(answer)
        except BadRequestError:
            info = await self._js.consumer_info(spec.stream.name, spec.durable)
        found: api.ConsumerConfig = info.config
        return found

    async def open_bucket(self, spec: BucketSpec) -> KeyValue:
        """Raises one of TRANSIENT_NATS where there is none yet."""
        return await self._js.key_value(spec.name)

    async def put(self, spec: BucketSpec, key: str, value: bytes, ttl_seconds: float | None) -> None:
        """Sets a key of a bucket. The library's own `put` knows no time to live."""
        await self._js.publish(f"$KV.{spec.name}.{key}", value, stream=f"KV_{spec.name}", msg_ttl=ttl_seconds)

    async def bucket_generation(self, spec: BucketSpec) -> str:
        """Changes when the bucket is made anew."""
        return str((await self._js.stream_info(f"KV_{spec.name}")).created)


def _consumer_config(spec: ConsumerSpec) -> api.ConsumerConfig:
    return api.ConsumerConfig(
        durable_name=spec.durable,
        filter_subject=spec.filter_subject,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=spec.ack_wait_seconds,
        # Deliveries are counted by the worker, which quarantines; the server would drop the message.
        max_deliver=-1,
        max_ack_pending=spec.max_ack_pending,
        max_waiting=spec.max_waiting,
    )
