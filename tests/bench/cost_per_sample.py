"""Cost of a sample: CPU of every process from submit to stored summary, and memory at two sizes.

The model server answers at once and is not counted. One row per process, its children included.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from proctor.stack.options import remote_pool
from proctor.v1 import run_pb2
from proctor.values.providers.pool import Provider
from proctor.values.run import FINAL_NUMBERS
from tests.bench.harness.bare_loop import cpu_seconds_of_bare_loop
from tests.bench.harness.instant_server import instant_server
from tests.bench.harness.stack_meter import Measured, StackMeter
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

SIZES = (1_000, 5_000, 20_000)
SAMPLE_EVERY_SECONDS = 0.25


async def measure_run(stack: StackHarness, samples: int) -> Measured:
    """One run of `samples` rows on a stack that stands already."""
    meter = StackMeter(stack)
    run_id = await stack.submit(keyed_order(limit=samples))
    while True:
        meter.look()
        run = await stack.client.run(run_id)
        if run.state in FINAL_NUMBERS:
            break
        await asyncio.sleep(SAMPLE_EVERY_SECONDS)
    await _require_right(stack, run, samples)
    return meter.measured()


async def _require_right(stack: StackHarness, run: run_pb2.Run, samples: int) -> None:
    """A figure of a run that lost something is not a figure."""
    summary = await stack.client.summary(run.run_id)
    figure = summary.tasks[0].metrics[0]
    if (run.state, figure.n, figure.mean) != (run_pb2.RUN_STATE_COMPLETED, samples, 1.0):
        raise SystemExit(f"The run of {samples} samples went wrong: {run.error.message or summary}")


def print_cost(measured: dict[int, Measured], title: str) -> None:
    """CPU seconds per 1,000 samples, one row per process."""
    table = Table(title=f"CPU seconds per 1,000 {title}")
    table.add_column("process")
    for size in measured:
        table.add_column(f"{size:,} samples", justify="right")
    names = next(iter(measured.values())).cpu_seconds
    for name in names:
        table.add_row(name, *(f"{run.cpu_seconds[name] / size * 1000:.3f}" for size, run in measured.items()))
    table.add_section()
    totals = [sum(run.cpu_seconds.values()) / size * 1000 for size, run in measured.items()]
    table.add_row("all", *(f"{total:.3f}" for total in totals))
    rates = [f"{size / run.wall_seconds:.0f}" for size, run in measured.items()]
    table.add_row("samples/s (wall)", *rates)
    Console(width=100).print(table)


def print_ratio(measured: Measured, floor: float) -> None:
    """Machines differ from day to day: the ratio to a bare loop of the same run is what may not rise."""
    cost = sum(measured.cpu_seconds.values()) / max(SIZES) * 1000
    Console(width=100).print(
        f"{max(SIZES):,} samples by a bare loop of aiohttp, uvloop and orjson: {floor:.3f} CPU seconds per "
        f"1,000. Ratio: {cost / floor:.2f}"
    )


def print_memory(measured: dict[int, Measured]) -> None:
    """Highest private memory of each process tree, in MiB."""
    table = Table(title="Peak private memory, MiB")
    table.add_column("process")
    for size in measured:
        table.add_column(f"{size:,} samples", justify="right")
    for name in next(iter(measured.values())).peak_mib:
        table.add_row(name, *(f"{run.peak_mib[name]:.0f}" for run in measured.values()))
    Console(width=100).print(table)


async def main() -> None:
    measured: dict[int, Measured] = {}
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        server = await opened.enter_async_context(instant_server(folder))
        pool = remote_pool(Provider("openai", server.url, "OPENAI_API_KEY"))
        order = StackOrder(rows=max(SIZES), is_long=True, pools=(pool,), environment={})
        stack = await opened.enter_async_context(stack_harness(folder, order))
        await measure_run(stack, 200)  # what is loaded on first use is not a cost per sample
        for size in SIZES:
            measured[size] = await measure_run(stack, size)
        floor = await cpu_seconds_of_bare_loop(server.url, folder / "suites", max(SIZES))
    print_cost(measured, "samples, submit to stored summary")
    print_ratio(measured[max(SIZES)], floor)
    print_memory(measured)
