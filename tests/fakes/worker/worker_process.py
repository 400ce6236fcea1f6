"""A worker as the stack starts it: a process of its own, with the openai engine over a socket."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        "nats_url": nats_url,
        "pools_file": str(pools_file),
        "worker_pool": pool_name,
        "worker_health_address": "127.0.0.1:0",
        "work_ack_wait_seconds": "2",
        **settings,
    }
    environment = {**os.environ, **{f"PROCTOR_{name.upper()}": value for name, value in chosen.items()}}
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.worker"], env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
