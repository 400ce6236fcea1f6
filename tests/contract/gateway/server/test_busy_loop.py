"""Requests of thousands of parts keep the gateway from nobody else: all that it does for one is soon done.

Others wait as long as one step of its loop takes. It is measured in seconds of CPU, which other programs do
not lengthen; `python -m tests.bench parts` shows what a client sees of it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import islice

import aiohttp
import grpc
import pytest
import pytest_asyncio

from tests.bench.gateway.many_parts import ITEMS, JSON, many_parts
from tests.contract.gateway.server.test_part_bounds import public_methods, refusal
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.harness.messages.many_items import filled, lists_in

MAX_SECONDS = 0.5
DEPTH = 19_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as opened:
        yield opened


@asynccontextmanager
async def watched_steps() -> AsyncIterator[list[float]]:
    """The seconds of CPU of each step of this loop, which is the gateway's too."""
    steps: list[float] = []

    async def watch() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            steps.append(now - last)
            last = now

    watching = asyncio.create_task(watch())
    try:
        yield steps
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def test_no_request_of_many_parts_keeps_the_loop_busy(harness: GatewayHarness) -> None:
    worst = {}
    async with (
        aiohttp.ClientSession(max_line_size=2**20) as session,
        grpc.aio.insecure_channel(harness.grpc) as channel,
    ):
        for name, send in many_parts(harness.http, session, channel).items():
            async with watched_steps() as steps:
                await send()
            worst[name] = max(steps)
    assert len(worst) > 5
    assert {name: seconds for name, seconds in worst.items() if seconds > MAX_SECONDS} == {}


async def test_no_list_of_a_message_keeps_the_loop_busy(harness: GatewayHarness) -> None:
    worst = {}
    async with grpc.aio.insecure_channel(harness.grpc) as channel:
        for method in public_methods():
            name = f"/{method.containing_service.full_name}/{method.name}"
            # Which list it is makes no difference: its items are counted before the message is parsed.
            for path in islice(lists_in(method.input_type), 1):
                # With the heads of the messages around it.
                content = filled(path, ITEMS - 100)
                async with watched_steps() as steps:
                    await refusal(channel, name, content, method)
                worst[name, ".".join(each.name for each in path)] = max(steps)
    assert len(worst) > 20
    assert {name: seconds for name, seconds in worst.items() if seconds > MAX_SECONDS} == {}


def deep_bodies() -> Iterator[bytes]:
    yield b"[" * DEPTH
    yield b'{"suite":' * DEPTH
    yield b'{"params":' + b"[" * (DEPTH // 2) + b"]" * (DEPTH // 2) + b"}"
    yield b'{"project_id":' + b"9" * 900_000 + b"}"


@pytest.mark.parametrize("path", ["/api/v1/benchmarking/run", "/api/v1/schedules", "/v1/batches"])
async def test_deep_and_long_values_are_refused_soon(harness: GatewayHarness, path: str) -> None:
    async with aiohttp.ClientSession(headers=JSON) as session:
        for body in deep_bodies():
            async with watched_steps() as steps, session.post(harness.http + path, data=body) as response:
                answer = await response.read()
            assert response.status in (400, 422), answer
            assert (max(steps) < MAX_SECONDS, len(answer) < 4096) == (True, True), body[:20]


async def test_a_socket_with_many_parameters_is_refused(harness: GatewayHarness) -> None:
    query = "&".join(f"{number:x}" for number in range(1_600))
    async with aiohttp.ClientSession(headers={"Origin": harness.http}) as session:
        for path in ("/socket", "/queue/socket", "/leaderboard/socket"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{harness.http}{path}?{query}")
            assert refused.value.status == 414
