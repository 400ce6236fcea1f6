"""JetStream over outages and wiped streams. What is missing is awaited: only `StreamMaker` makes streams."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError, NoServersError
from nats.js import api
from nats.js.errors import APIError, BadRequestError, NotFoundError
from nats.js.kv import KeyValue

from proctor.values.messaging import inbox_prefix_of
from services.common.errors import DependencyUnavailable, MessageTooLarge
from services.common.lifecycle import raise_if_cancelled
from services.common.structured_logs import get_logger

log = get_logger()

# An outage ends as one of these; asyncio's own timeout is what nats-py raises for some calls.
TRANSIENT_NATS: tuple[type[Exception], ...] = (NatsError, asyncio.TimeoutError, ConnectionError, OSError)

MESSAGE_ID = "Nats-Msg-Id"
REQUEST_SECONDS = 5.0
# Short: a publish into an outage is not answered, and repeating it under its id does no harm.
_PUBLISH_SECONDS = 2.0
_CONNECT_PATIENCE_SECONDS = 20.0
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
_WATCH_CHECK_SECONDS = 1.0


class NatsAway(DependencyUnavailable):
    """NATS does not answer at {address}. Start it or correct PROCTOR_NATS_URL."""


@dataclass(frozen=True)
class StreamSpec:
    """A work-queue stream that refuses new messages when it is full."""

    name: str
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class ConsumerSpec:
    """A durable pull consumer."""

    stream: StreamSpec
    durable: str
    filter_subject: str
    ack_wait_seconds: float
    max_ack_pending: int
    # Requests that wait at a time; the server refuses further ones.
    max_waiting: int = 512


@dataclass(frozen=True)
class Waiting:
    """Messages of a consumer that were never delivered, and when the first of them was sent."""

    count: int
    since: datetime | None = None


@dataclass(frozen=True)
class BucketSpec:
    """A key-value bucket; with a ttl its keys expire."""

    name: str
    ttl_seconds: float | None = None


@dataclass(frozen=True)
class BucketEntry:
    """A key as it is now; no value means that it was deleted or expired. `put_at` is the server's time."""

    key: str
    value: bytes | None
    put_at: datetime


async def connect_nats(url: str, name: str) -> Client:
    """A connection that reconnects for ever. The first attempt lasts up to 20 seconds."""

    async def quiet(_: Exception) -> None:
        """Publishing and pulling raise failures themselves; the callback would only repeat them."""

    async def reconnected() -> None:
        log.info("nats reconnected")

    try:
        connecting = nats.connect(
            url,
            name=name,
            inbox_prefix=inbox_prefix_of(url),
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            connect_timeout=2,
            ping_interval=10,
            max_outstanding_pings=2,
            pending_size=64 * 1024 * 1024,
            error_cb=quiet,
            reconnected_cb=reconnected,
        )
        return await asyncio.wait_for(connecting, _CONNECT_PATIENCE_SECONDS)
    except (TimeoutError, NoServersError, OSError) as error:
        raise NatsAway(address=url.rsplit("@", 1)[-1]) from error


class JetStream:
    """Streams, consumers and buckets of one connection.

    A quiet watch asks every `bucket_check_seconds` whether its bucket was made anew. Workers ask rarely:
    there may be thousands.
    """

    def __init__(self, connection: Client, *, bucket_check_seconds: float = 1.0) -> None:
        self.connection = connection
        self.bucket_check_seconds = bucket_check_seconds
        self._js = connection.jetstream(timeout=REQUEST_SECONDS)

    @property
    def reconnects(self) -> int:
        """How often the connection was made again."""
        return self.connection.stats["reconnects"]

    async def stream_generation(self, spec: StreamSpec) -> str:
        """Changes when the stream is made anew, which means that messages were lost."""
        try:
            info = await self._js.stream_info(spec.name)
        except NotFoundError:
            return "missing"
        return str(info.created)

    async def publish(self, subject: str, payload: bytes, message_id: str) -> None:
        """Returns when the stream holds the message; repeats over outages, a full and a missing stream.

        A message over the server's limit is raised at once, as `MessageTooLarge`.
        """
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._js.publish(
                    subject,
                    payload,
                    timeout=_PUBLISH_SECONDS,
                    headers={MESSAGE_ID: message_id},
                )
            except MaxPayloadError as error:
                raise MessageTooLarge(
                    f"A message of {len(payload)} bytes is too large to be sent: {error}"
                ) from error
            except TRANSIENT_NATS as error:
                raise_if_cancelled()
                log.info("publish repeated", subject=subject, error=repr(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            else:
                return

    async def pending(self, spec: StreamSpec, subject_filter: str) -> int:
        """Messages in the stream under the subjects: waiting or delivered and not acknowledged."""
        return sum((await self.pending_by_subject(spec, subject_filter)).values())

    async def pending_by_subject(self, spec: StreamSpec, subject_filter: str) -> Mapping[str, int]:
        """Like `pending`, for each subject that has any."""
        try:
            info = await self._js.stream_info(spec.name, subjects_filter=subject_filter)
        except NotFoundError:
            return {}
        return info.state.subjects or {}

    async def waiting(self, spec: ConsumerSpec) -> Waiting:
        """What waits for a consumer; everything under its subjects where it was never pulled from."""
        try:
            info = await self._js.consumer_info(spec.stream.name, spec.durable)
        except NotFoundError:
            count, delivered = await self.pending(spec.stream, spec.filter_subject), 0
        else:
            count, delivered = info.num_pending or 0, info.delivered.stream_seq if info.delivered else 0
        if not count:
            return Waiting(0)
        return Waiting(count, await self.sent_at(spec.stream, spec.filter_subject, after=delivered))

    async def sent_at(self, spec: StreamSpec, subject_filter: str, *, after: int = 0) -> datetime | None:
        """When the first message under the subjects was sent that comes after one of the stream."""
        try:
            message = await self._js.get_msg(spec.name, seq=after + 1, subject=subject_filter, next=True)
        except NotFoundError:
            return None
        return message.time

    async def purge(self, spec: StreamSpec, subject_filter: str) -> None:
        """Removes what waits under the subjects."""
        with contextlib.suppress(NotFoundError):
            await self._js.purge_stream(spec.name, subject=subject_filter)

    async def max_bytes(self, spec: StreamSpec) -> float:
        """What the stream may hold, as it is configured now; infinite without a limit."""
        limit = (await self._js.stream_info(spec.name)).config.max_bytes or 0
        return limit if limit > 0 else math.inf

    async def make_consumer(self, spec: ConsumerSpec) -> None:
        """Makes the consumer or brings it in line, as far as the server can change it."""
        config = api.ConsumerConfig(
            durable_name=spec.durable,
            filter_subject=spec.filter_subject,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=spec.ack_wait_seconds,
            max_deliver=-1,
            max_ack_pending=spec.max_ack_pending,
            max_waiting=spec.max_waiting,
        )
        try:
            await self._js.add_consumer(spec.stream.name, config)
        except BadRequestError as error:
            await self._js.consumer_info(spec.stream.name, spec.durable)
            log.warning("consumer left as it is", consumer=spec.durable, error=repr(error))

    async def subscribe_pull(self, spec: ConsumerSpec) -> nats.js.JetStreamContext.PullSubscription:
        """Makes the consumer as needed and binds to it."""
        await self.make_consumer(spec)
        return await self._js.pull_subscribe_bind(spec.durable, spec.stream.name)

    async def open_bucket(self, spec: BucketSpec) -> KeyValue:
        """Raises one of TRANSIENT_NATS where there is none yet."""
        return await self._js.key_value(spec.name)

    async def bucket_generation(self, spec: BucketSpec) -> str:
        """Changes when the bucket is made anew."""
        return str((await self._js.stream_info(f"KV_{spec.name}")).created)


class Puller:
    """Pulls from one consumer, over outages and wiped streams."""

    def __init__(self, jetstream: JetStream, spec: ConsumerSpec) -> None:
        self._jetstream = jetstream
        self._spec = spec
        self._subscription: nats.js.JetStreamContext.PullSubscription | None = None

    async def fetch(self, batch: int, timeout_seconds: float) -> list[Msg]:
        """Up to `batch` messages; an empty list when none came in time or the server is away."""
        messages = await self._fetch(batch, timeout_seconds)
        raise_if_cancelled()
        return messages

    async def _fetch(self, batch: int, timeout_seconds: float) -> list[Msg]:
        try:
            if self._subscription is None:
                self._subscription = await self._jetstream.subscribe_pull(self._spec)
            return await self._subscription.fetch(batch, timeout=timeout_seconds)
        except (TimeoutError, nats.errors.TimeoutError):
            # A wiped consumer answers nothing, as one without messages does.
            await self._check()
            return []
        except TRANSIENT_NATS as error:
            log.info("pull repeated", consumer=self._spec.durable, error=repr(error))
            await self._drop()
            await asyncio.sleep(FIRST_PAUSE_SECONDS * 8)
            return []

    async def _check(self) -> None:
        if self._subscription is None:
            return
        try:
            await self._subscription.consumer_info()
        except TRANSIENT_NATS:
            await self._drop()

    async def _drop(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        try:
            await subscription.unsubscribe()
        except TRANSIENT_NATS as error:
            log.debug("unsubscribe failed", consumer=self._spec.durable, error=repr(error))

    async def close(self) -> None:
        """Ends the subscription; the consumer stays."""
        await self._drop()


class Bucket:
    """A key-value bucket, over outages and wipes."""

    def __init__(self, jetstream: JetStream, spec: BucketSpec) -> None:
        self._jetstream = jetstream
        self._spec = spec
        self._opened: KeyValue | None = None
        self._stream = StreamSpec(f"KV_{spec.name}", (f"$KV.{spec.name}.>",))

    async def put(self, key: str, value: bytes) -> None:
        """Sets a key; raises one of TRANSIENT_NATS when the server or the bucket is away."""
        await (await self._open()).put(key, value)

    async def delete(self, key: str) -> None:
        """Removes a key; raises one of TRANSIENT_NATS when the server or the bucket is away."""
        await (await self._open()).delete(key)

    async def purge(self, key: str) -> None:
        """Removes what is left of a deleted key: the marker that reports its deletion to watchers."""
        await self._jetstream.purge(self._stream, f"$KV.{self._spec.name}.{key}")

    async def keys(self) -> list[str]:
        """All keys, and those whose deletion is still marked; reads no values."""
        subjects = await self._jetstream.pending_by_subject(self._stream, self._stream.subjects[0])
        return [subject.rpartition(".")[2] for subject in subjects]

    async def get(self, key: str) -> bytes | None:
        """The value, or None where there is none (any more)."""
        bucket = await self._open()
        try:
            entry = await bucket.get(key)
        except NotFoundError:
            return None
        return entry.value

    async def _open(self) -> KeyValue:
        """Asked for once: a handle is the bucket's name, so it serves a bucket that is made again too."""
        if self._opened is None:
            self._opened = await self._jetstream.open_bucket(self._spec)
        return self._opened

    async def entries(self) -> dict[str, bytes]:
        """All keys as they are now."""
        bucket = await self._open()
        found: dict[str, bytes] = {}
        watcher = await bucket.watchall()
        try:
            while (entry := await watcher.updates(timeout=REQUEST_SECONDS)) is not None:
                if entry.operation is None and entry.value is not None:
                    found[entry.key] = entry.value
        finally:
            await _stop(watcher)
        return found

    async def watch(self) -> AsyncIterator[BucketEntry]:
        """Every key as it is now and each change after, for ever; after an outage all keys come again."""
        while True:
            try:
                async for entry in self._watch_once():
                    yield entry
            except TRANSIENT_NATS as error:
                log.info("watch repeated", bucket=self._spec.name, error=repr(error))
                await asyncio.sleep(LONGEST_PAUSE_SECONDS)
            raise_if_cancelled()
            await asyncio.sleep(FIRST_PAUSE_SECONDS * 4)

    async def _watch_once(self) -> AsyncIterator[BucketEntry]:
        bucket = await self._open()
        born = await self._jetstream.bucket_generation(self._spec)
        watcher = await bucket.watchall()
        loop = asyncio.get_running_loop()
        reconnects, checked = self._jetstream.reconnects, loop.time()
        try:
            while True:
                try:
                    entry = await watcher.updates(timeout=_WATCH_CHECK_SECONDS)
                except (TimeoutError, APIError):
                    raise_if_cancelled()
                    if self._jetstream.reconnects != reconnects:
                        return
                    if loop.time() < checked + self._jetstream.bucket_check_seconds:
                        continue
                    if await self._jetstream.bucket_generation(self._spec) != born:
                        return
                    checked = loop.time()
                    continue
                if entry is not None:
                    is_gone = entry.operation is not None
                    yield BucketEntry(entry.key, None if is_gone else entry.value, entry.created)
        finally:
            await _stop(watcher)


async def _stop(watcher: KeyValue.KeyWatcher) -> None:
    # A failure here must not take the place of the cancellation that led here.
    with contextlib.suppress(*TRANSIENT_NATS):
        await watcher.stop()
