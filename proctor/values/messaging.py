"""Names on NATS (subjects, their tokens, message ids; messages are in work_messages.proto) and on gRPC.

Sizes of the streams of NATS: the scheduler makes them, and the doctor computes the disk that they need.
"""

import hashlib
import re
from collections.abc import Iterable
from math import ceil
from urllib.parse import urlsplit

from proctor.values.priority import Priority

# gRPC's default is 4 MiB, and a single sample may have that.
MAX_GRPC_MESSAGE_BYTES = 16 * 1024 * 1024
# One sample may have 4 MiB, a shard a little more: the wire takes 8.
MAX_NATS_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_HEARTBEAT_BYTES = 256 * 1024
# Every answer has the release of its server.
RELEASE_KEY = "x-proctor-release"

PROGRESS_OF_ALL_RUNS = "progress.*"
STATES_OF_ALL_RUNS = "states.*"
OUTCOMES_OF_ALL_RUNS = "outcomes.*"
ALL_WORK = "work.>"
ALL_RATES = "rates.*.*"
ALL_BUNDLES = "bundles.*"
ALL_ARTIFACTS = "artifacts.*"
ALL_BUDGETS = "budgets.*"
ALL_PROBES = "probes.*"

SCHEDULER_USER = "scheduler"

# The key in the bucket of a pool's switches: the worker that switched its model last.
LAST_SWITCH = "last"

_MIB = 1024**2
# For each pool.
WORK_STREAM_BYTES = 256 * _MIB
OUTCOME_STREAM_BYTES = 1024 * _MIB
# No stream is cut to less: a message may have 8 MiB.
MIN_STREAM_BYTES = 32 * _MIB
# The buckets of one pool and those of all: heartbeats, samples that are executed alone, states of runs.
_BUCKET_BYTES = 40 * _MIB
# nats-server gives its streams this part of the space that is free when it starts.
_STREAM_SHARE = 0.75

# Names of what the scheduler reports as gRPC health, beside its services: whether all streams and buckets
# of NATS exist and take messages, and whether those that exist take messages.
STREAMS_HEALTH = "proctor.streams"
STREAM_WRITES_HEALTH = "proctor.streams.writes"

# The name under which JetStream as a whole is refused, beside those of streams and buckets.
JETSTREAM = "JetStream"

# The model token of pools that serve any model of their provider.
ANY_MODEL = "any"

_UNSAFE = re.compile(r"[^a-z0-9]+")


def worker_user(pool: str) -> str:
    """The user of NATS that the workers of a pool share (decision 0026)."""
    return f"worker-{pool}"


def inbox_prefix(user: str) -> str:
    """The prefix of the inboxes of a user of NATS. Others may not listen there."""
    return f"_INBOX_{user}" if user else "_INBOX"


def inbox_prefix_of(url: str) -> str:
    """The prefix for the user that the URL of NATS names."""
    return inbox_prefix(urlsplit(url).username or "")


def model_token(model: str) -> str:
    """A model's name as one token of a subject: readable, and made distinct by a hash."""
    slug = _UNSAFE.sub("-", model.lower()).strip("-")[:40]
    return f"{slug}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def work_subject(pool: str, token: str, priority: Priority, run_id: str) -> str:
    """Shards of a run; `token` is `model_token(model)` or `ANY_MODEL`."""
    return f"work.{pool}.{token}.{priority}.{run_id}"


def work_of_run(run_id: str) -> str:
    """Filter for all shards of a run."""
    return f"work.*.*.*.{run_id}"


def work_of_model(pool: str, token: str) -> str:
    """Filter for all shards of a model in a pool."""
    return f"work.{pool}.{token}.>"


def work_of_pool(pool: str) -> str:
    """Filter for all shards of a pool."""
    return f"work.{pool}.>"


def heartbeat_bucket_name(pool: str) -> str:
    """The bucket of a pool with a key for each worker."""
    return f"WORKERS_{pool}"


def switch_bucket_name(pool: str) -> str:
    """The bucket of a pool with the one key `LAST_SWITCH`."""
    return f"SWITCHES_{pool}"


def quarantine_bucket_name(pool: str) -> str:
    """The bucket of a pool with a key for each sample that is executed alone."""
    return f"QUARANTINE_{pool}"


def quarantine_key(run_id: str, epoch: int, rollout: int, sample: int) -> str:
    return f"{run_id}.{epoch}.{rollout}.{sample}"


def keys_of_bucket(bucket: str) -> str:
    """Filter for all keys of a bucket: subjects of the stream `KV_<bucket>`."""
    return f"$KV.{bucket}.>"


def work_stream_name(pool: str) -> str:
    """The stream of all shards of a pool."""
    return f"WORK_{pool}"


def probe_subject(stream: str) -> str:
    """Where the scheduler tries whether the stream, or the bucket `KV_…`, takes messages. Nobody reads it."""
    return f"probes.{stream}"


def token_of_work(subject: str) -> str:
    """The model's token in a subject of `work_subject`."""
    return subject.split(".")[2]


def run_of_work(subject: str) -> str:
    """The run in a subject of `work_subject`."""
    return subject.split(".")[4]


def work_of_priority(pool: str, token: str, priority: Priority) -> str:
    """Filter for the shards of one model and priority in a pool."""
    return f"work.{pool}.{token}.{priority}.>"


def work_consumer_name(pool: str, token: str, priority: Priority) -> str:
    """The durable consumer that the workers of a pool share for one model and priority."""
    return f"{pool}-{token}-{priority}"


def outcome_subject(run_id: str) -> str:
    """Outcomes of a run."""
    return f"outcomes.{run_id}"


def progress_subject(run_id: str) -> str:
    """Core NATS: what results has recorded of a run."""
    return f"progress.{run_id}"


def state_subject(run_id: str) -> str:
    """Core NATS, empty message: the state of a run has changed; look it up."""
    return f"states.{run_id}"


def model_list_subject(pool: str) -> str:
    """Core NATS, request and reply: the models that a pool can serve; one of its workers answers."""
    return f"models.{pool}"


def bundle_subject(pool: str) -> str:
    """Core NATS, request and reply: a worker asks for files of a task; one scheduler answers."""
    return f"bundles.{pool}"


def artifact_subject(pool: str) -> str:
    """Core NATS, request and reply: a worker stores a part of an artifact; one scheduler answers."""
    return f"artifacts.{pool}"


def budget_subject(pool: str) -> str:
    """Core NATS, request and reply: a worker reports the used budgets of a rollout; one scheduler answers."""
    return f"budgets.{pool}"


def rate_subject(pool: str, rate_limit_key: str) -> str:
    """Core NATS: what a worker sent to a provider under one key, and what the provider refused."""
    return f"rates.{pool}.{rate_limit_key}"


def rates_of_pool(pool: str) -> str:
    """Filter for the rates that the workers of a pool report."""
    return rate_subject(pool, "*")


def pool_of_rates(subject: str) -> str:
    """The pool in a subject of `rate_subject`."""
    return subject.split(".")[1]


def quota_key(pool: str, rate_limit_key: str) -> str:
    """The key in the bucket QUOTAS: what the workers of a pool may ask a provider under one key."""
    return f"{pool}.{rate_limit_key}"


def quotas_of_pool(pool: str) -> str:
    """Filter for the keys of a pool in the bucket QUOTAS."""
    return quota_key(pool, "*")


def split_quota_key(name: str) -> tuple[str, str]:
    """Pool and rate limit key in a key of `quota_key`."""
    pool, _, rate_limit_key = name.partition(".")
    return pool, rate_limit_key


def shard_message_id(run_id: str, epoch: int, shard: int, attempt: int, part: int = 0) -> str:
    """The id of a dispatched shard; heavy shards travel in several parts. JetStream drops a repeated id."""
    dispatched = f"{run_id}/{epoch}/{shard}/{attempt}"
    return f"{dispatched}/part {part}" if part else dispatched


def single_message_id(run_id: str, epoch: int, shard: int, attempt: int, sample: int) -> str:
    """The id of one sample cut from a shard: a cut repeated after a crash adds nothing."""
    return f"{run_id}/{epoch}/{shard}/{attempt}/{sample}"


def rest_message_id(run_id: str, epoch: int, shard: int, attempt: int, unique: str) -> str:
    """The id of what is left of a shard; `unique` was never used before."""
    return f"{run_id}/{epoch}/{shard}/{attempt}/{unique}/rest"


def disk_bytes(streams: Iterable[int]) -> int:
    """The free space in which nats-server makes streams of these sizes and the buckets."""
    return ceil((sum(streams) + _BUCKET_BYTES) / _STREAM_SHARE)
