"""The doors of a standing stack beside its typed client: REST, bare gRPC, the command line."""

import asyncio
import json
import os
import shlex
import sys
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.harness.processes import bound, output_of
from tests.harness.stack_harness import StackHarness

API = "/api/v1/benchmarking"


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class CommandEnd:
    """How a command of the command line ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What --json prints: one document and nothing else."""
        return json.loads(self.out)


async def http(stack: StackHarness, method: str, path: str, **more: Any) -> HttpAnswer:
    url = f"http://{stack.stack.gateway_http}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url, **more) as response:
        return HttpAnswer(response.status, await response.json(content_type=None), dict(response.headers))


async def proctor(stack: StackHarness, line: str) -> CommandEnd:
    """A command of the command line, as a script would call it."""
    return await proctor_with({"PROCTOR_GATEWAY": stack.stack.gateway_grpc}, line)


async def proctor_with(environment: dict[str, str], line: str) -> CommandEnd:
    process = await asyncio.create_subprocess_exec(
        *bound(sys.executable, "-m", "proctor.cli", *shlex.split(line)),
        env={"PATH": os.environ["PATH"], **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await output_of(process, 300)
    assert process.returncode is not None
    return CommandEnd(process.returncode, out.decode(), err.decode())
