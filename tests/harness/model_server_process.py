"""The fake model server as a process of its own, controlled and inspected over its socket."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from proctor.stack.supervision.process import terminate
from tests.fakes.providers.model_traffic import Traffic
from tests.harness.forks.services import MODEL_SERVER, start_forked
from tests.harness.processes import END_SECONDS

_LIMIT = aiohttp.ClientTimeout(total=30)


@dataclass(frozen=True)
class ModelServerProcess:
    """A running server; `url` is what an OpenAI client takes as its base."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def url_of(self, asker: str) -> str:
        """A base URL of its own, by which the server tells who asks."""
        return f"{self._root}/as/{asker}/v1"

    async def traffic(self, asker: str) -> Traffic:
        """What it saw of a worker that was given `url_of`, or else of a model, since the last reset."""
        return Traffic(**(await self.stats())["traffic"].get(asker, {}))

    async def stats(self) -> dict[str, Any]:
        """Requests, answered, faulted, aborted, in_flight, distinct_prompts, traffic by asker."""
        async with (
            aiohttp.ClientSession(timeout=_LIMIT) as session,
            session.get(f"{self._root}/stats") as response,
        ):
            return dict(await response.json())

    async def control(self, **order: object) -> None:
        """Sets fault, latency_seconds or continuations; see the server's own words."""
        body = json.dumps(order)
        async with (
            aiohttp.ClientSession(timeout=_LIMIT) as session,
            session.post(f"{self._root}/ctl", data=body) as response,
        ):
            response.raise_for_status()

    @property
    def _root(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def model_server_process(models: Sequence[str] = ("fake",)) -> AsyncIterator[ModelServerProcess]:
    """Starts the server on a free port and stops it at the end. Models but the first are of another mind."""
    named = [argument for model in models for argument in ("--model", model)]
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            output = (theirs.fileno(), 2)
            process = await start_forked(MODEL_SERVER, ("--port", "0", *named), os.environ, output)
        try:
            ours.setblocking(False)  # noqa: FBT003  # its only parameter
            line = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, 1024), 20)
            yield ModelServerProcess(port=json.loads(line)["port"], pid=process.pid)
        finally:
            await terminate(process, signal.SIGTERM, END_SECONDS)
