"""A worker as the stack starts it: a process of its own, with the openai engine over a socket."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.processes import bound

CONCURRENCY = 8


@contextmanager
def worker_process(
    nats_url: str, base_url: str, folder: Path, *, pool_name: str = "remote", **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """`settings` by the names of WorkerSettings. The caller may end it in any way."""
    pool = {"name": pool_name, "engine": "openai", "concurrency": CONCURRENCY, "provider": "openai"}
    pools_file = folder / "pools.yaml"
    pools_file.write_text(json.dumps({"pools": [{**pool, "base_url": base_url}]}))
    chosen = {
        "pool": pool_name,
        "health_address": "127.0.0.1:0",
        "ack_wait_seconds": "2",
        **settings,
    }
    own = {f"PROCTOR_WORKER_{name.upper()}": value for name, value in chosen.items()}
    shared = {"PROCTOR_NATS_URL": nats_url, "PROCTOR_POOLS_FILE": str(pools_file)}
    environment = {**os.environ, **shared, **own}
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            bound(sys.executable, "-m", "services.worker"), env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
