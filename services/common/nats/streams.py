"""Streams, consumers and buckets of JetStream. Subjects: `proctor.values.messaging`."""

from proctor.values import messaging
from proctor.values.priority import Priority
from proctor.values.providers.worker import MAX_POOL_WORKERS
from services.common.nats.specs import BucketBounds, BucketSpec, ConsumerSpec, StreamSpec

# Streams of work and of outcomes are work queues: a message is gone once it is acknowledged. They refuse when
# full (back-pressure).
OUTCOMES = StreamSpec(name="OUTCOMES", subjects=(messaging.OUTCOMES_OF_ALL_RUNS,))

# Keys of finished runs expire.
RUNS_BUCKET = BucketSpec(name="RUNS", expiry_shown_seconds=60.0)
# A heartbeat comes every 3 s by default: three may be lost before a live worker seems dead, and two at the
# longest interval that a worker takes. Each comes up to a quarter of a second late.
HEARTBEAT_TTL_SECONDS = 15.0
MAX_HEARTBEAT_SECONDS = 4.0
HEARTBEAT_BOUNDS = BucketBounds(
    total_bytes=16 * 1024**2, value_bytes=messaging.MAX_HEARTBEAT_BYTES, keys=MAX_POOL_WORKERS
)
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
