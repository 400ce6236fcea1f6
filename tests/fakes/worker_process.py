"""A worker as the stack starts it: a process of its own, with the openai engine over a socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

CONCURRENCY = 8


class ModelServerProcess:
    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}"

    async def stats(self) -> dict[str, Any]:
        return await self._exchange("GET", "/stats")

    async def control(self, **order: object) -> None:
        await self._exchange("POST", "/ctl", order)

    async def _exchange(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.base_url + path, json=body) as response,
        ):
            answer: dict[str, Any] = await response.json()
            return answer


@asynccontextmanager
async def model_server_process(port: int = 0) -> AsyncIterator[ModelServerProcess]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.fakes.model_server",
        "--port",
        str(port),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 20)
        yield ModelServerProcess(json.loads(line)["port"])
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 10)


@contextmanager
def worker_process(
    nats_url: str, base_url: str, folder: Path, **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """`settings` by the names of WorkerSettings. The caller may end it in any way."""
    pool = {"name": "remote", "engine": "openai", "concurrency": CONCURRENCY, "provider": "openai"}
    pools_file = folder / "pools.yaml"
    pools_file.write_text(json.dumps({"pools": [{**pool, "base_url": f"{base_url}/v1"}]}))
    chosen = {
        "nats_url": nats_url,
        "pools_file": str(pools_file),
        "worker_pool": "remote",
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
