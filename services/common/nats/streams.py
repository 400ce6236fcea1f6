"""Streams, consumers and buckets of JetStream, and who makes them. Subjects: `proctor.values.messaging`."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js import api
from nats.js.errors import NotFoundError

from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.values.providers.worker import MAX_POOL_WORKERS
from services.common.metrics import STREAM_BYTES, STREAM_LIMIT_BYTES, STREAM_MESSAGES
from services.common.nats.specs import BucketBounds, BucketSpec, ConsumerSpec, StreamSpec
from services.common.structured_logs import get_logger

log = get_logger()

# Streams of work and of outcomes are work queues: a message is gone once it is acknowledged. They refuse when
# full (back-pressure).
OUTCOMES = StreamSpec(name="OUTCOMES", subjects=(messaging.OUTCOMES_OF_ALL_RUNS,))

RUNS_BUCKET = BucketSpec(name="RUNS")
# A heartbeat comes every 3 s by default: three may be lost before a live worker seems dead, and two at the
# longest interval that a worker takes. Each comes up to a quarter of a second late.
HEARTBEAT_TTL_SECONDS = 15.0
MAX_HEARTBEAT_SECONDS = 4.0
# A usual heartbeat has 1 KiB; one that lists thousands of models and adapters has a hundred.
HEARTBEAT_BOUNDS = BucketBounds(total_bytes=16 * 1024**2, value_bytes=256 * 1024, keys=MAX_POOL_WORKERS)
# One key with the id of a worker.
_SWITCH_BOUNDS = BucketBounds(total_bytes=64 * 1024, value_bytes=4 * 1024)
# Longer than a pool waits for a worker after the end of another.
_QUARANTINE_TTL_SECONDS = 86_400.0
# A key has some 150 bytes, and its value a number.
_QUARANTINE_BOUNDS = BucketBounds(total_bytes=16 * 1024**2, value_bytes=1024)
QUOTAS_BUCKET = BucketSpec(name="QUOTAS")


def heartbeat_bucket(pool: str) -> BucketSpec:
    """The heartbeats of a pool, a key for each worker."""
    name = messaging.heartbeat_bucket_name(pool)
    return BucketSpec(name=name, ttl_seconds=HEARTBEAT_TTL_SECONDS, bounds=HEARTBEAT_BOUNDS)


def switch_bucket(pool: str) -> BucketSpec:
    """The last switch of a model in a pool."""
    return BucketSpec(name=messaging.switch_bucket_name(pool), bounds=_SWITCH_BOUNDS)


def quarantine_bucket(pool: str) -> BucketSpec:
    """Samples that workers of a pool execute alone."""
    name = messaging.quarantine_bucket_name(pool)
    return BucketSpec(name=name, ttl_seconds=_QUARANTINE_TTL_SECONDS, bounds=_QUARANTINE_BOUNDS)


def work_stream(pool: str) -> StreamSpec:
    """The shards of a pool. NATS grants permissions by stream: no worker reads the stream of another pool."""
    return StreamSpec(name=messaging.work_stream_name(pool), subjects=(messaging.work_of_pool(pool),))


def work_consumer(pool: str, token: str, priority: Priority, ack_wait_seconds: float) -> ConsumerSpec:
    """The durable consumer that the workers of a pool share for one model and priority."""
    return ConsumerSpec(
        stream=work_stream(pool),
        durable=messaging.work_consumer_name(pool, token, priority),
        filter_subject=messaging.work_of_priority(pool, token, priority),
        ack_wait_seconds=ack_wait_seconds,
        # Messages in flight of all workers of the pool. Beyond it the server delivers none.
        max_ack_pending=4096,
        # Every idle worker of the pool has one.
        max_waiting=16_384,
    )


def outcome_consumer(ack_wait_seconds: float) -> ConsumerSpec:
    """The durable consumer that the replicas of results share."""
    return ConsumerSpec(
        stream=OUTCOMES,
        durable="results",
        filter_subject=messaging.OUTCOMES_OF_ALL_RUNS,
        ack_wait_seconds=ack_wait_seconds,
        max_ack_pending=1024,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Limits of the streams that are made; existing streams keep theirs. `work_bytes` are for each pool."""

    replicas: int = 1
    work_bytes: int = 256 * 1024**2
    outcome_bytes: int = 1024**3


class StreamMaker:
    """Makes what is missing. An operator may have changed what exists, so it is left alone."""

    def __init__(
        self, connection: Client, pools: Collection[str], limits: StreamLimits | None = None
    ) -> None:
        self._jetstream = connection.jetstream()
        self._configs = tuple(_configs(pools, limits or StreamLimits()))
        self._reported: set[str] = set()

    async def make_missing(self) -> None:
        """Costs one request if all of them exist."""
        infos = await self._jetstream.streams_info()
        self._report(infos)
        found = {info.config.name: info.config for info in infos}
        for config in self._configs:
            name = config.name or ""
            if name not in found:
                await self._make(config, name)
            elif name not in self._reported and (differing := _differing(config, found[name])):
                self._reported.add(name)
                log.warning("stream differs from the settings", stream=name, fields=differing)

    async def _make(self, config: api.StreamConfig, name: str) -> None:
        """Asks again first: a cluster leaves a stream that has no leader just now out of its list."""
        try:
            await self._jetstream.stream_info(name)
        except NotFoundError:
            await self._jetstream.add_stream(config)
            log.info("stream made", stream=name)

    def _report(self, infos: Iterable[api.StreamInfo]) -> None:
        """Sets the metrics, without the buckets and without what others have in the same NATS."""
        queues = {config.name for config in self._configs if config.retention}
        for info in infos:
            if info.config.name in queues:
                name = str(info.config.name)
                STREAM_MESSAGES.labels(name).set(info.state.messages)
                STREAM_BYTES.labels(name).set(info.state.bytes)
                STREAM_LIMIT_BYTES.labels(name).set(info.config.max_bytes or 0)


def _configs(pools: Collection[str], limits: StreamLimits) -> Iterator[api.StreamConfig]:
    sizes = [(work_stream(pool), limits.work_bytes) for pool in pools]
    for spec, max_bytes in (*sizes, (OUTCOMES, limits.outcome_bytes)):
        yield api.StreamConfig(
            name=spec.name,
            subjects=list(spec.subjects),
            retention=api.RetentionPolicy.WORK_QUEUE,
            discard=api.DiscardPolicy.NEW,
            storage=api.StorageType.FILE,
            max_bytes=max_bytes,
            num_replicas=limits.replicas,
        )
    makers = (heartbeat_bucket, switch_bucket, quarantine_bucket)
    of_pools = [make(pool) for pool in pools for make in makers]
    for bucket in (RUNS_BUCKET, QUOTAS_BUCKET, *of_pools):
        yield _bucket_config(bucket, limits.replicas)


def _bucket_config(bucket: BucketSpec, replicas: int) -> api.StreamConfig:
    """A key-value bucket is a stream of this form."""
    config = api.StreamConfig(
        name=f"KV_{bucket.name}",
        subjects=[f"$KV.{bucket.name}.>"],
        discard=api.DiscardPolicy.NEW,
        max_age=bucket.ttl_seconds,
        max_msgs_per_subject=1,
        # The settings of buckets that nats-py makes itself, which other clients expect.
        deny_delete=True,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        num_replicas=replicas,
    )
    if bucket.bounds is None:
        return config
    return config.evolve(
        discard=api.DiscardPolicy.OLD,
        max_msgs=bucket.bounds.keys,
        max_bytes=bucket.bounds.total_bytes,
        max_msg_size=bucket.bounds.value_bytes,
        # With them one message removes a key, or all keys, or stays for ever.
        allow_rollup_hdrs=False,
        allow_msg_ttl=False,
    )


def _differing(wanted: api.StreamConfig, found: api.StreamConfig) -> list[str]:
    """Fields that decide what is kept and differ from the settings; unset ones are not compared."""
    names = ("retention", "discard", "max_bytes", "max_age", "num_replicas")
    given = [name for name in names if getattr(wanted, name) is not None]
    return [name for name in given if getattr(wanted, name) != getattr(found, name)]
