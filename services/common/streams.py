"""JetStream's streams, consumers and buckets. The names of subjects are in `proctor.values.messaging`."""

from proctor.values import messaging
from proctor.values.priority import Priority
from services.common.jetstream import BucketSpec, ConsumerSpec, StreamSpec

_MIB = 1024 * 1024

# Both are work queues: a message is gone once it is acknowledged. They refuse when full (back-pressure).
WORK = StreamSpec(name="WORK", subjects=(messaging.ALL_WORK,), max_bytes=1024 * _MIB)
OUTCOMES = StreamSpec(name="OUTCOMES", subjects=(messaging.OUTCOMES_OF_ALL_RUNS,), max_bytes=1024 * _MIB)

RUNS_BUCKET = BucketSpec(name="RUNS")
WORKERS_BUCKET = BucketSpec(name="WORKERS", ttl_seconds=15.0)
QUOTAS_BUCKET = BucketSpec(name="QUOTAS")


def work_consumer(pool: str, token: str, priority: Priority, ack_wait_seconds: float) -> ConsumerSpec:
    """The durable consumer that the workers of a pool share for one model and priority."""
    return ConsumerSpec(
        stream=WORK,
        durable=messaging.work_consumer_name(pool, token, priority),
        filter_subject=messaging.work_of_priority(pool, token, priority),
        ack_wait_seconds=ack_wait_seconds,
        max_ack_pending=4096,
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
