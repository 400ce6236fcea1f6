"""Cost of a batch: uploaded, run, written and read by the protocol of OpenAI, at two sizes.

Lines are those of the real batch, each with an id and a question of its own. The model server is not counted;
it answers at once, and the one in C with 160 characters.
"""

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import orjson
from openai import AsyncOpenAI
from openai.types import Batch
from rich.console import Console
from rich.table import Table

from proctor.stack.options import remote_pool
from proctor.values.providers.pool import Provider
from tests.bench.cost_per_sample import print_cost, print_memory
from tests.bench.harness.instant_server import InstantServer, instant_server
from tests.bench.harness.stack_meter import Measured, StackMeter
from tests.fakes.eventually import eventually
from tests.fakes.gateway.openai_client import openai_client
from tests.harness.batch_counts import BatchCount, count_batch
from tests.harness.stack_harness import MODEL, StackHarness, StackOrder, stack_harness

SIZES = (5_000, 50_000)
ANSWER_CHARS = 160
LOOK_EVERY_SECONDS = 0.25
LIMIT_SECONDS = 300.0
FINAL = ("completed", "failed", "expired", "cancelled")
BATCH = Path(os.environ.get("PROCTOR_DATA_DIR", "")) / "batch" / "batch_5000.jsonl"


@dataclass
class Moments:
    """Seconds since the upload began."""

    uploaded: float = 0.0
    created: float = 0.0
    asked: float = 0.0
    in_progress: float = 0.0
    ended: float = 0.0
    read: float = 0.0


@dataclass(frozen=True)
class BatchHarness:
    """The services and the folder that a batch is measured on."""

    stack: StackHarness
    client: AsyncOpenAI
    model_server: InstantServer


@dataclass(frozen=True)
class MeasuredBatch:
    size_bytes: int
    moments: Moments
    upload: Measured
    run: Measured
    whole: Measured


def batch_of(count: int) -> bytes:
    """Lines that repeat, but for their ids and one word of what they ask: none is answered for another."""
    lines = [orjson.loads(line) for line in _block().splitlines()]
    content = bytearray()
    for number, line in enumerate(islice(cycle(lines), count)):
        *before, last = line["body"]["messages"]
        asked = {**last, "content": f"{last['content']} ({number})"}
        body = {**line["body"], "messages": [*before, asked]}
        content += orjson.dumps({**line, "custom_id": f"{line['custom_id']}-{number:06}", "body": body})
        content += b"\n"
    return bytes(content)


def _block() -> bytes:
    """The real batch where it is at hand, else lines as long as its."""
    if BATCH.is_file():
        return BATCH.read_bytes()
    words = " ".join(f"word{number}" for number in range(60))
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": words}]
    body = {"model": "test-model", "messages": messages, "max_tokens": 4, "temperature": 0}
    line = {"custom_id": "words", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return orjson.dumps(line) + b"\n"


async def measure_batch(harness: BatchHarness, lines: int) -> MeasuredBatch:
    content, client = batch_of(lines), harness.client
    await harness.model_server.forget()
    moments, whole = Moments(), StackMeter(harness.stack)
    started = time.monotonic()
    file = await client.files.create(file=("lines.jsonl", content), purpose="batch")
    moments.uploaded, upload = time.monotonic() - started, whole.measured()
    rest = StackMeter(harness.stack)
    batch = await client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    moments.created = time.monotonic() - started
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch_asked(harness.model_server, moments, started))
        while batch.status not in FINAL:
            whole.look()
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            batch = await client.batches.retrieve(batch.id)
            if batch.in_progress_at and not moments.in_progress:
                moments.in_progress = time.monotonic() - started
        watching.cancel()
    moments.ended, run = time.monotonic() - started, rest.measured()
    counted = await _counted(client, batch, content)
    moments.read = time.monotonic() - started
    asked = await harness.model_server.asked()
    if (batch.status, counted.answered, asked, counted.problems) != ("completed", lines, lines, ()):
        raise SystemExit(f"The batch of {lines} went wrong, {asked} were asked: {counted}\n{batch}")
    return MeasuredBatch(len(content), moments, upload, run, whole.measured())


async def _watch_asked(server: InstantServer, moments: Moments, started: float) -> None:
    async def is_asked() -> bool:
        return bool(await server.asked())

    await eventually(is_asked, "a line is asked", LIMIT_SECONDS)
    moments.asked = time.monotonic() - started


async def _counted(client: AsyncOpenAI, batch: Batch, content: bytes) -> BatchCount:
    files = [
        (await client.files.content(file_id)).content if file_id else b""
        for file_id in (batch.output_file_id, batch.error_file_id)
    ]
    return count_batch(content, *files)


def print_moments(measured: dict[int, MeasuredBatch]) -> None:
    table = Table(title="Seconds of a batch")
    table.add_column("")
    for lines, one in measured.items():
        table.add_column(f"{lines:,} lines, {one.size_bytes / 1e6:.0f} MB", justify="right")
    reported = [one.moments for one in measured.values()]
    for name, seconds in (
        ("uploaded and validated", [one.uploaded for one in reported]),
        ("accepted", [one.created - one.uploaded for one in reported]),
        ("accepted to first line asked", [one.asked - one.created for one in reported]),
        ("accepted to in_progress (seen)", [one.in_progress - one.created for one in reported]),
        ("accepted to completed", [one.ended - one.created for one in reported]),
        ("output read", [one.read - one.ended for one in reported]),
    ):
        table.add_row(name, *(f"{one:.2f}" for one in seconds))
    Console(width=100).print(table)


async def _opened(opened: AsyncExitStack) -> BatchHarness:
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
    server = await opened.enter_async_context(instant_server(folder, ANSWER_CHARS))
    pool = remote_pool(Provider("openai", server.url, "OPENAI_API_KEY"))
    order = StackOrder(pools=(pool,), environment={}, aliases={"test-model": MODEL})
    stack = await opened.enter_async_context(stack_harness(folder, order))
    client = await opened.enter_async_context(openai_client(f"http://{stack.stack.gateway_http}"))
    return BatchHarness(stack, client, server)


async def main() -> None:
    measured: dict[int, MeasuredBatch] = {}
    async with AsyncExitStack() as opened:
        harness = await _opened(opened)
        await measure_batch(harness, 200)  # what is loaded on first use is not a cost per line
        for size in SIZES:
            measured[size] = await measure_batch(harness, size)
    print_moments(measured)
    print_cost({size: one.upload for size, one in measured.items()}, "lines, upload")
    print_cost({size: one.run for size, one in measured.items()}, "lines, accepted to completed")
    print_cost({size: one.whole for size, one in measured.items()}, "lines, upload to output read")
    print_memory({size: one.whole for size, one in measured.items()})
