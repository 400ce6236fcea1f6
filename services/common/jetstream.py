"""JetStream over outages and wiped streams: missing streams, consumers and buckets are made again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError, NoServersError
from nats.js import api
from nats.js.errors import APIError, BucketNotFoundError, NotFoundError
from nats.js.kv import KeyValue

from services.common.errors import DependencyUnavailable, MessageTooLarge
from services.common.lifecycle import raise_if_cancelled
from services.common.structured_logs import get_logger

T = TypeVar("T")
log = get_logger()

# An outage ends as one of these; asyncio's own timeout is what nats-py raises for some calls.
TRANSIENT_NATS: tuple[type[Exception], ...] = (NatsError, asyncio.TimeoutError, ConnectionError, OSError)

MESSAGE_ID = "Nats-Msg-Id"
_REQUEST_SECONDS = 5.0
# Short: a publish into an outage is not answered, and repeating it under its id does no harm.
_PUBLISH_SECONDS = 2.0
_CONNECT_PATIENCE_SECONDS = 20.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_WATCH_CHECK_SECONDS = 1.0


class NatsAway(DependencyUnavailable):
    """NATS does not answer at {address}. Start it or correct PROCTOR_NATS_URL."""


@dataclass(frozen=True)
class StreamSpec:
    """A work-queue stream that refuses new messages when it is full."""

    name: str
    subjects: tuple[str, ...]
    max_bytes: int


@dataclass(frozen=True)
class ConsumerSpec:
    """A durable pull consumer."""

    stream: StreamSpec
    durable: str
    filter_subject: str
    ack_wait_seconds: float
    max_ack_pending: int


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
    """A key as it is now; no value means that it was deleted or expired."""

    key: str
    value: bytes | None


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
    """Streams, consumers and buckets of one connection."""

    def __init__(self, connection: Client, *, replicas: int = 1) -> None:
        self._connection = connection
        self._js = connection.jetstream(timeout=_REQUEST_SECONDS)
        self._replicas = replicas

    @property
    def reconnects(self) -> int:
        """How often the connection was made again."""
        return self._connection.stats["reconnects"]

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Makes the stream, or brings an existing one in line."""
        config = api.StreamConfig(
            name=spec.name,
            subjects=list(spec.subjects),
            retention=api.RetentionPolicy.WORK_QUEUE,
            discard=api.DiscardPolicy.NEW,
            storage=api.StorageType.FILE,
            max_bytes=spec.max_bytes,
            num_replicas=self._replicas,
        )
        try:
            await self._js.update_stream(config)
        except NotFoundError:
            await self._js.add_stream(config)
            log.info("stream made", stream=spec.name)

    async def stream_generation(self, spec: StreamSpec) -> str:
        """Changes when the stream is made anew, which means that messages were lost."""
        info = await self._on_stream(spec, lambda: self._js.stream_info(spec.name))
        return str(info.created)

    async def publish(self, spec: StreamSpec, subject: str, payload: bytes, message_id: str) -> None:
        """Returns when the stream holds the message; repeats over outages, a full and a wiped stream.

        A message over the server's limit is raised at once, as `MessageTooLarge`.
        """
        pause = _FIRST_PAUSE_SECONDS
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
                await self._restore(spec)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                return

    async def pending(self, spec: StreamSpec, subject_filter: str) -> int:
        """Messages in the stream under the subjects: waiting or delivered and not acknowledged."""
        info = await self._on_stream(
            spec, lambda: self._js.stream_info(spec.name, subjects_filter=subject_filter)
        )
        return sum((info.state.subjects or {}).values())

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
        await self._on_stream(spec, lambda: self._js.purge_stream(spec.name, subject=subject_filter))

    async def purge_key(self, spec: BucketSpec, key: str) -> None:
        await self._js.purge_stream(f"KV_{spec.name}", subject=f"$KV.{spec.name}.{key}")

    async def keys(self, spec: BucketSpec) -> list[str]:
        prefix = f"$KV.{spec.name}."
        info = await self._js.stream_info(f"KV_{spec.name}", subjects_filter=f"{prefix}>")
        return [subject.removeprefix(prefix) for subject in info.state.subjects or {}]

    def puller(self, spec: ConsumerSpec) -> "Puller":
        """A way to pull from a consumer, which is made when first needed."""
        return Puller(self, spec)

    def bucket(self, spec: BucketSpec) -> "Bucket":
        """A way to a bucket, which is made when first needed."""
        return Bucket(self, spec)

    async def _on_stream(self, spec: StreamSpec, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except NotFoundError:
            await self.ensure_stream(spec)
            return await call()

    async def _restore(self, spec: StreamSpec) -> None:
        try:
            await self.ensure_stream(spec)
        except TRANSIENT_NATS as error:
            log.debug("stream not restored yet", stream=spec.name, error=repr(error))

    async def subscribe_pull(self, spec: ConsumerSpec) -> nats.js.JetStreamContext.PullSubscription:
        """Makes the stream and the consumer as needed and binds to the consumer."""
        await self.ensure_stream(spec.stream)
        config = api.ConsumerConfig(
            durable_name=spec.durable,
            filter_subject=spec.filter_subject,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=spec.ack_wait_seconds,
            max_deliver=-1,
            max_ack_pending=spec.max_ack_pending,
        )
        await self._js.add_consumer(spec.stream.name, config)
        return await self._js.pull_subscribe_bind(spec.durable, spec.stream.name)

    async def open_bucket(self, spec: BucketSpec) -> KeyValue:
        """Binds to the bucket and makes it as needed."""
        try:
            return await self._js.key_value(spec.name)
        except BucketNotFoundError:
            return await self._js.create_key_value(
                api.KeyValueConfig(bucket=spec.name, ttl=spec.ttl_seconds, history=1, replicas=self._replicas)
            )

    async def bucket_generation(self, spec: BucketSpec) -> str:
        """Changes when the bucket is made anew or the connection is."""
        info = await self._js.stream_info(f"KV_{spec.name}")
        return f"{info.created}/{self.reconnects}"


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
            await asyncio.sleep(_FIRST_PAUSE_SECONDS * 4)
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

    async def put(self, key: str, value: bytes) -> None:
        """Sets a key; raises one of TRANSIENT_NATS when the server is away."""
        bucket = await self._jetstream.open_bucket(self._spec)
        await bucket.put(key, value)

    async def delete(self, key: str) -> None:
        """Removes a key; raises one of TRANSIENT_NATS when the server is away."""
        bucket = await self._jetstream.open_bucket(self._spec)
        await bucket.delete(key)

    async def purge(self, key: str) -> None:
        """Removes what is left of a deleted key: the marker that told watchers of its deletion."""
        await self._jetstream.purge_key(self._spec, key)

    async def keys(self) -> list[str]:
        """All keys, and those whose deletion is still marked; reads no values."""
        return await self._jetstream.keys(self._spec)

    async def get(self, key: str) -> bytes | None:
        """The value, or None where there is none (any more)."""
        bucket = await self._jetstream.open_bucket(self._spec)
        try:
            entry = await bucket.get(key)
        except NotFoundError:
            return None
        return entry.value

    async def entries(self) -> dict[str, bytes]:
        """All keys as they are now."""
        bucket = await self._jetstream.open_bucket(self._spec)
        found: dict[str, bytes] = {}
        watcher = await bucket.watchall()
        try:
            while (entry := await watcher.updates(timeout=_REQUEST_SECONDS)) is not None:
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
            raise_if_cancelled()
            await asyncio.sleep(_FIRST_PAUSE_SECONDS * 4)

    async def _watch_once(self) -> AsyncIterator[BucketEntry]:
        bucket = await self._jetstream.open_bucket(self._spec)
        born = await self._jetstream.bucket_generation(self._spec)
        watcher = await bucket.watchall()
        try:
            while True:
                try:
                    entry = await watcher.updates(timeout=_WATCH_CHECK_SECONDS)
                except (TimeoutError, APIError):
                    raise_if_cancelled()
                    if await self._jetstream.bucket_generation(self._spec) != born:
                        return
                    continue
                if entry is not None:
                    is_gone = entry.operation is not None
                    yield BucketEntry(entry.key, None if is_gone else entry.value)
        finally:
            await _stop(watcher)


async def _stop(watcher: KeyValue.KeyWatcher) -> None:
    # A failure here must not take the place of the cancellation that led here.
    with contextlib.suppress(*TRANSIENT_NATS):
        await watcher.stop()
