"""Ten workers on one run: how long after one another they have nothing more to do, against a shard's time."""

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from tests.e2e.harness.run_ends import ended
from tests.fakes.eventually import eventually
from tests.harness.replicas import replica
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

WORKERS = 10
REPEATS = 2
# What the server calls the worker that the stack starts: its model, since it has no base URL of its own.
FIRST_WORKER = "fake"


@dataclass(frozen=True)
class Setting:
    """Requests of a worker at a time, and how long the model takes for one."""

    concurrency: int
    latency_seconds: float
    samples: int


SETTINGS = (Setting(8, 0.1, 2_000), Setting(8, 0.5, 1_000), Setting(64, 1.0, 5_000), Setting(64, 0.0, 5_000))


@dataclass(frozen=True)
class Spread:
    """`seconds`: from the first worker's last answer to the last worker's; `answers` of each worker."""

    seconds: float
    shard_seconds: Sequence[float]
    answers: Sequence[int]
    whole_seconds: float


@asynccontextmanager
async def stack_of_workers(folder: Path, workers: int, setting: Setting) -> AsyncIterator[StackHarness]:
    """Each worker has a base URL of its own, so that the server tells them apart."""
    order = StackOrder(rows=setting.samples, concurrency=setting.concurrency, environment={})
    async with stack_harness(folder, order) as stack, AsyncExitStack() as opened:
        pools = (folder / "state" / "pools.yaml").read_text()
        server = stack.model_server
        for name in replica_names(workers):
            own = folder / f"pools-{name}.yaml"
            own.write_text(pools.replace(server.url, server.url_of(name)))
            await opened.enter_async_context(replica(stack, "worker", name, PROCTOR_POOLS_FILE=str(own)))

        async def all_are_known() -> bool:
            return len((await stack.client.queue.GetQueue(queue_pb2.GetQueueRequest())).workers) == workers

        await eventually(all_are_known, f"{workers} workers are known")
        yield stack


def replica_names(workers: int) -> list[str]:
    return [f"worker-{number}" for number in range(1, workers)]


async def spread_of_run(stack: StackHarness, workers: int, setting: Setting) -> Spread:
    server = stack.model_server
    await server.control(latency_seconds=setting.latency_seconds, reset_stats=True)
    run_id = await stack.submit(keyed_order(limit=setting.samples))
    run = await ended(stack, run_id, 120)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    names = (FIRST_WORKER, *replica_names(workers))
    seen = [traffic for name in names if (traffic := await server.traffic(name)).answered]
    last = [traffic.last_answered_at for traffic in seen]
    return Spread(
        seconds=max(last) - min(last),
        shard_seconds=shard_seconds(stack, run_id),
        answers=[traffic.answered for traffic in seen],
        whole_seconds=max(last) - min(traffic.first_asked_at for traffic in seen),
    )


def shard_seconds(stack: StackHarness, run_id: str) -> Sequence[float]:
    """By the workers' logs: from a shard's delivery to its acknowledgement."""
    found = []
    for path in (stack.stack.options.state_dir / "logs").glob("*worker*.log"):
        lines = [json.loads(line) for line in path.read_text().splitlines() if '"event": "shard"' in line]
        found += [line["seconds"] for line in lines if line["run_id"] == run_id]
    return found


def print_spreads(measured: Sequence[tuple[Setting, Spread]]) -> None:
    table = Table(title=f"{WORKERS} workers on one run: seconds between their last answers")
    columns = ("requests at a time", "latency", "samples", "run", "apart", "a shard: median", "longest",
               "workers", "answers of one")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="right")
    for setting, spread in measured:
        table.add_row(
            *(str(setting.concurrency), f"{setting.latency_seconds:g}", f"{setting.samples:,}"),
            *(f"{spread.whole_seconds:.2f}", f"{spread.seconds:.2f}"),
            *(f"{median(spread.shard_seconds):.2f}", f"{max(spread.shard_seconds):.2f}"),
            *(str(len(spread.answers)), f"{min(spread.answers)} to {max(spread.answers)}"),
        )
    Console(width=110).print(table)


async def main() -> None:
    measured: list[tuple[Setting, Spread]] = []
    for setting in SETTINGS:
        with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
            async with stack_of_workers(Path(folder), WORKERS, setting) as stack:
                measured += [(setting, await spread_of_run(stack, WORKERS, setting)) for _ in range(REPEATS)]
    print_spreads(measured)
    if any(spread.seconds > max(spread.shard_seconds) for _, spread in measured):
        raise SystemExit("Not reached: within one shard's time of one another")
