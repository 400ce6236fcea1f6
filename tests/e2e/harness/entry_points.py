"""The doors of a standing stack beside its typed client: REST, bare gRPC, the command line."""

import os
import shlex
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.fakes.stack.forked_commands import Finished, forked
from tests.harness.stack_harness import StackHarness

COMMAND_SECONDS = 300.0
API = "/api/v1/benchmarking"


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: Any
    headers: dict[str, str]


async def http(stack: StackHarness, method: str, path: str, **more: Any) -> HttpAnswer:
    url = f"http://{stack.stack.gateway_http}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url, **more) as response:
        return HttpAnswer(response.status, await response.json(content_type=None), dict(response.headers))


async def proctor(stack: StackHarness, line: str) -> Finished:
    """A command of the command line, as a script would call it."""
    return await proctor_with({"PROCTOR_GATEWAY": stack.stack.gateway_grpc}, line)


async def proctor_with(environment: dict[str, str], line: str) -> Finished:
    variables = {"PATH": os.environ["PATH"], **environment}
    return await forked(tuple(shlex.split(line)), variables, COMMAND_SECONDS)
