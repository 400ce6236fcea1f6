"""Names on NATS: streams, subjects, consumers, buckets. The messages are in protos/…/work_messages.proto."""

import hashlib
import re

from services.common.jetstream import BucketSpec, ConsumerSpec, StreamSpec

_MIB = 1024 * 1024

# Both are work queues: a message is gone once it is acknowledged. They refuse when full (back-pressure).
WORK = StreamSpec(name="WORK", subjects=("work.>",), max_bytes=1024 * _MIB)
OUTCOMES = StreamSpec(name="OUTCOMES", subjects=("outcomes.*",), max_bytes=1024 * _MIB)

RUNS_BUCKET = BucketSpec(name="RUNS")
WORKERS_BUCKET = BucketSpec(name="WORKERS", ttl_seconds=15.0)
QUOTAS_BUCKET = BucketSpec(name="QUOTAS")

PROGRESS_OF_ALL_RUNS = "progress.*"
CHANGES_OF_ALL_RUNS = "changes.*"
ALL_RATES = "rates.*"

# Token of pools that serve any model of their provider.
ANY_MODEL = "any"
PRIORITIES = ("high", "normal", "low")

_SAFE = re.compile(r"[^a-z0-9]+")


def model_token(model: str) -> str:
    """A model's name as one token of a subject: readable, and distinct by a piece of its hash."""
    slug = _SAFE.sub("-", model.lower()).strip("-")[:40]
    return f"{slug}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def work_subject(pool: str, token: str, priority: str, run_id: str) -> str:
    """Where shards of a run go; `token` is `model_token(model)` or `ANY_MODEL`."""
    return f"work.{pool}.{token}.{priority}.{run_id}"


def work_of_run(run_id: str) -> str:
    """Filter for all shards of a run."""
    return f"work.*.*.*.{run_id}"


def work_consumer(pool: str, token: str, priority: str, ack_wait_seconds: float) -> ConsumerSpec:
    """The durable consumer that the workers of a pool share for one model and priority."""
    return ConsumerSpec(
        stream=WORK,
        durable=f"{pool}-{token}-{priority}",
        filter_subject=f"work.{pool}.{token}.{priority}.>",
        ack_wait_seconds=ack_wait_seconds,
        max_ack_pending=4096,
    )


def outcome_subject(run_id: str) -> str:
    """Where outcomes of a run go."""
    return f"outcomes.{run_id}"


def outcome_consumer(ack_wait_seconds: float) -> ConsumerSpec:
    """The durable consumer that the replicas of results share."""
    return ConsumerSpec(
        stream=OUTCOMES,
        durable="results",
        filter_subject="outcomes.*",
        ack_wait_seconds=ack_wait_seconds,
        max_ack_pending=1024,
    )


def progress_subject(run_id: str) -> str:
    """Core NATS: what results has recorded of a run."""
    return f"progress.{run_id}"


def change_subject(run_id: str) -> str:
    """Core NATS, empty message: the state of a run has changed; look it up."""
    return f"changes.{run_id}"


def model_list_subject(pool: str) -> str:
    """Core NATS, request and reply: the models that a pool can serve; one of its workers answers."""
    return f"models.{pool}"


def rate_subject(rate_limit_key: str) -> str:
    """Core NATS: requests of a worker to a provider under one key."""
    return f"rates.{rate_limit_key}"
