"""Permissions in NATS: one user for the scheduler, one for results, and one for the workers of each pool.

A worker reads and acknowledges the shards of its own pool only, because each pool has a stream of its own. It
writes into buckets of its own pool only, because a header of one message may remove what a whole bucket has.
`proctor nats-users` prints the same list for a server that is not the local stack's.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from proctor.values import messaging


@dataclass(frozen=True, slots=True)
class Permissions:
    """Subjects that a user may send to and receive from, beside its own inboxes."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()


def _stream(name: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"$JS.API.STREAM.{verb}.{name}" for verb in verbs)


def _consumers(stream: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"$JS.API.CONSUMER.{verb}.{stream}.>" for verb in verbs)


def _pulled(stream: str) -> tuple[str, ...]:
    """Permissions to make durable consumers of a stream and pulls from them. No purge and no deletion.

    No direct get: it sends a message as it is to any reply subject.
    """
    made = _consumers(stream, "CREATE", "INFO", "MSG.NEXT")
    return (*_stream(stream, "INFO", "MSG.GET"), *made, f"$JS.ACK.{stream}.>")


def _watched(bucket: str) -> tuple[str, ...]:
    """Permissions to read the keys of a bucket and their changes: an ephemeral consumer of its stream."""
    stream = f"KV_{bucket}"
    made = (f"$JS.API.CONSUMER.CREATE.{stream}", *_consumers(stream, "CREATE", "INFO", "DELETE"))
    return (*_stream(stream, "INFO"), *made, f"$JS.FC.{stream}.>")


_SCHEDULER = Permissions(
    (
        messaging.ALL_WORK,
        messaging.STATES_OF_ALL_RUNS,
        messaging.model_list_subject("*"),
        messaging.ALL_PROBES,
        "$KV.RUNS.>",
        "$KV.QUOTAS.>",
        "$JS.API.>",
        "$JS.FC.>",
    ),
    (
        messaging.PROGRESS_OF_ALL_RUNS,
        messaging.STATES_OF_ALL_RUNS,
        messaging.ALL_RATES,
        messaging.ALL_BUNDLES,
        messaging.ALL_ARTIFACTS,
        messaging.ALL_BUDGETS,
    ),
)
_RESULTS = Permissions((messaging.PROGRESS_OF_ALL_RUNS, *_pulled("OUTCOMES")))


def _worker_permissions(pool: str) -> Permissions:
    """A shard that is cut goes back into the stream of the pool."""
    return Permissions(
        (
            messaging.work_of_pool(pool),
            messaging.OUTCOMES_OF_ALL_RUNS,
            messaging.rates_of_pool(pool),
            messaging.bundle_subject(pool),
            messaging.artifact_subject(pool),
            messaging.budget_subject(pool),
            f"$KV.{messaging.heartbeat_bucket_name(pool)}.>",
            f"$KV.{messaging.switch_bucket_name(pool)}.{messaging.LAST_SWITCH}",
            f"$KV.{messaging.quarantine_bucket_name(pool)}.>",
            *_pulled(messaging.work_stream_name(pool)),
            *_watched("RUNS"),
            *_watched("QUOTAS"),
            *_watched(messaging.heartbeat_bucket_name(pool)),
            *_stream(f"KV_{messaging.switch_bucket_name(pool)}", "INFO", "MSG.GET"),
            *_stream(f"KV_{messaging.quarantine_bucket_name(pool)}", "INFO", "MSG.GET"),
        ),
        (messaging.model_list_subject(pool),),
    )


def permissions_of(pools: Iterable[str]) -> Mapping[str, Permissions]:
    """The permissions of each user, by its name."""
    workers = {messaging.worker_user(pool): _worker_permissions(pool) for pool in pools}
    return {messaging.SCHEDULER_USER: _SCHEDULER, "results": _RESULTS, **workers}


def permissions_block(user: str, permissions: Permissions) -> dict[str, object]:
    """Permissions as nats-server reads them.

    A user that receives a request may send the answer to the inbox of its sender.
    """
    inboxes = f"{messaging.inbox_prefix(user)}.>"
    return {
        "permissions": {
            "publish": {"allow": [*permissions.publish, "$JS.API.INFO"]},
            "subscribe": {"allow": [*permissions.subscribe, inboxes]},
            # A list of models goes out in a few messages; nothing else is answered.
            "allow_responses": {"max": 8, "expires": "1m"},
        }
    }


def authorization_block(pools: Iterable[str]) -> str:
    """A block of a configuration of nats-server, which reads passwords from variables of its environment."""
    users = [
        {"user": user, "password": f"${password_variable(user)}", **permissions_block(user, permissions)}
        for user, permissions in permissions_of(pools).items()
    ]
    quoted = json.dumps({"users": users}, indent=2)
    return "authorization: " + re.sub(r'"password": "(\$\w+)"', r'"password": \1', quoted) + "\n"


def password_variable(user: str) -> str:
    return "NATS_PASSWORD_" + re.sub(r"[^A-Z0-9]", "_", user.upper())
