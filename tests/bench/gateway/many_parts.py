"""Requests of thousands of parts, and how long `/healthz` and another user's read take beside them.

Each is sent three times at once to a real stack. A part is what a parser makes an object of: a parameter, a
value of JSON, an item of a message.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import grpc
from rich.console import Console
from rich.table import Table

from tests.harness.stack_harness import StackOrder, stack_harness

AT_ONCE = 3
PARTS = 9_000
ID = "00000000-0000-4000-8000-000000000000"
JSON = {"Content-Type": "application/json"}
# An empty item of a list, by the number of its field: so many fit into the largest message.
ITEMS = 2_000_000
Send = Callable[[], Awaitable[object]]


def many_parts(url: str, session: aiohttp.ClientSession, channel: grpc.aio.Channel) -> Mapping[str, Send]:
    """Requests to a gateway, by what they have many of."""
    query = "&".join(f"{number:x}=1" for number in range(PARTS))
    values = b'{"task": "rows", "metrics": [' + b"{}," * 250_000 + b"{}]}"
    keys = b"{" + b",".join(b'"%d":0' % number for number in range(80_000)) + b"}"
    form = b"&".join(b"%d=1" % number for number in range(PARTS))

    def http(method: str, path: str, **more: object) -> Send:
        async def send() -> None:
            async with session.request(method, url + path, **more) as response:  # type: ignore[arg-type]  # its options
                await response.read()

        return send

    def call(path: str, content: bytes) -> Send:
        async def send() -> None:
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/proctor.v1.{path}"
            )
            with suppress(grpc.aio.AioRpcError):  # it is refused
                await method(content, timeout=60)

        return send

    return {
        "parameters of /sign-in": http("GET", f"/sign-in?{query}"),
        "headers of an export": http(
            "GET",
            f"/api/v1/benchmarking/results/{ID}/export",
            headers={f"x{number:x}": "1" for number in range(3_000)},
        ),
        "escapes of a cookie": http("GET", "/sign-in", headers={"Cookie": 'a="' + '\\"' * 30_000 + '"'}),
        "objects of rescore": http("POST", f"/api/v1/benchmarking/rescore/{ID}", data=values, headers=JSON),
        "keys of estimate": http("POST", "/api/v1/benchmarking/estimate", data=keys, headers=JSON),
        "fields of /sign-in": http(
            "POST", "/sign-in", data=form, headers={"Content-Type": "application/x-www-form-urlencoded"}
        ),
        "runs of CompareRuns": call("ComparisonService/CompareRuns", b"\x0a\x00" * ITEMS),
        "answers of MarkAnswers": call("AnswerService/MarkAnswers", b"\x12\x00" * ITEMS),
    }


async def beside(get: Send, seconds: list[float], over: asyncio.Event) -> None:
    while not over.is_set():
        began = time.perf_counter()
        await get()
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(0.01)


async def main() -> None:
    columns = ("request", "answered after, s", "worst /healthz, s", "worst read of another, s")
    table = Table(*columns, title=f"{PARTS} of everything, {AT_ONCE} at once")
    with TemporaryDirectory() as folder:
        async with (
            stack_harness(Path(folder), StackOrder(rows=20)) as stack,
            aiohttp.ClientSession(max_line_size=2**20) as session,
            grpc.aio.insecure_channel(stack.stack.gateway_grpc) as channel,
        ):

            async def get(path: str) -> None:
                async with session.get(
                    f"http://{stack.stack.gateway_http}{path}", headers={"x-proctor-user": "another"}
                ) as response:
                    assert response.status == 200, await response.text()

            async def nothing() -> None:
                await asyncio.sleep(1)

            sent = many_parts(f"http://{stack.stack.gateway_http}", session, channel)
            for name, send in {"nothing": nothing, **sent}.items():
                over, alive, reads = asyncio.Event(), list[float](), list[float]()
                async with asyncio.TaskGroup() as group:
                    group.create_task(beside(lambda: get("/healthz"), alive, over))
                    group.create_task(beside(lambda: get("/api/v1/queue"), reads, over))
                    began = time.perf_counter()
                    await asyncio.gather(*(send() for _ in range(AT_ONCE)))
                    took = time.perf_counter() - began
                    over.set()
                table.add_row(name, f"{took:.2f}", f"{max(alive):.2f}", f"{max(reads):.2f}")
    Console(width=110).print(table)
