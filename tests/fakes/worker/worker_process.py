"""A worker as the stack starts it: a process of its own, with the openai engine over a socket."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.stack.supervision.process import Program, RunningProcess, terminate
from tests.harness.forks.services import start_warm
from tests.harness.processes import END_SECONDS

CONCURRENCY = 8


@asynccontextmanager
async def worker_process(
    nats_url: str, base_url: str, folder: Path, *, pool_name: str = "remote", **settings: str
) -> AsyncIterator[RunningProcess]:
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
    program = Program((sys.executable, "-P", "-m", "services.worker"), environment)
    process = await start_warm(program, folder / "worker.log")
    try:
        yield process
    finally:
        await terminate(process, signal.SIGKILL, END_SECONDS)
