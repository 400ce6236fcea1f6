"""The stack that the tests of a module strike and share, and how it is struck."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats

from proctor.stack.supervision.child import SupervisedChild
from tests.chaos.faults.faulted_run import ROWS
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import MODEL, SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

# Of a million tokens.
PRICE = 2.0


@asynccontextmanager
async def faulted_stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        prices = state_dir.parent / "prices.yaml"
        prices.write_text(f"currency: EUR\nprices:\n  {MODEL}: {{input: {PRICE:g}, output: {PRICE:g}}}\n")
        environment = {**SHORT_TIMEOUTS, "PROCTOR_SCHEDULER_PRICES_FILE": str(prices)}
        async with stack_harness(
            state_dir.parent, StackOrder(rows=ROWS, environment=environment, models=("fake", "other"))
        ) as stack:
            yield stack


def pids_of(stack: StackHarness) -> dict[str, int | None]:
    return {name: child.pid for name, child in stack.stack.children.items()}


async def kill(stack: StackHarness, name: str) -> None:
    await kill_child(stack.stack.child(name))


async def kill_child(child: SupervisedChild) -> None:
    """`kill -9` of a child that is up; returns when the supervisor has noticed."""
    name = child.spec.name
    await eventually(child.ready.is_set, f"{name} is up to be killed", 30)
    assert child.pid is not None
    restarts = child.restarts
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: child.restarts > restarts, f"the death of {name} is noticed")


async def keep_away(stack: StackHarness, name: str, seconds: float) -> None:
    """Kills each process of a child for so long; returns when it is ready again."""
    child = stack.stack.child(name)
    await kill_child(child)
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while clock() < until:
        if child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)
        await asyncio.sleep(0.1)
    await eventually(child.ready.is_set, f"{name} is back", 60)


async def wipe(stack: StackHarness) -> None:
    """Streams, consumers, messages and buckets: a bucket is a stream too."""
    connection = await nats.connect(stack.stack.nats_url)
    try:
        jetstream = connection.jetstream()
        names = [str(info.config.name) for info in await jetstream.streams_info()]
        assert {"OUTCOMES", "KV_RUNS"} <= set(names)
        for prefix in ("WORK_", "KV_WORKERS_"):
            assert any(name.startswith(prefix) for name in names)
        for name in names:
            await jetstream.delete_stream(name)
    finally:
        await connection.close()
