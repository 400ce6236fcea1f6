"""Services that are told to stop while a server that they need refuses connections or is silent."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psutil

from proctor.stack.supervision.child import SupervisedChild
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.thorough_cases import first_cases
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

Fault = Callable[[SupervisedChild], AbstractAsyncContextManager[None]]

SERVICES = ("gateway", "scheduler", "results", "worker")
DRAIN_SECONDS = 5
# In which a worker publishes and closes after its drain time.
BEYOND_DRAIN_SECONDS = 8
# What a busy machine may add until an end is noticed.
NOTICED_SECONDS = 4
DRAINS = {f"PROCTOR_{service.upper()}_DRAIN_SECONDS": str(DRAIN_SECONDS) for service in SERVICES}


@asynccontextmanager
async def running_run() -> AsyncIterator[StackHarness]:
    """A stack in the middle of a run: results records, workers ask, and the scheduler dispatches."""
    order = StackOrder(rows=4000, environment={**SHORT_TIMEOUTS, **DRAINS})
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            await stack.model_server.control(latency_seconds=0.1)
            run_id = await stack.submit()

            async def records() -> bool:
                return (await stack.client.run(run_id)).progress.recorded > 0

            await eventually(records, "outcomes are recorded", 60)
            yield stack


@asynccontextmanager
async def gone(server: SupervisedChild) -> AsyncIterator[None]:
    """Its port refuses connections."""
    await server.stop()
    yield


@asynccontextmanager
async def silent(server: SupervisedChild) -> AsyncIterator[None]:
    """The kernel accepts connections, and none is answered: as with a machine that vanished."""
    assert server.pid is not None
    first = psutil.Process(server.pid)
    processes = [first, *first.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            if process.is_running():
                process.resume()


async def seconds_to_end(child: SupervisedChild) -> float:
    assert child.pid is not None
    restarts, began = child.restarts, time.monotonic()
    os.kill(child.pid, signal.SIGTERM)
    await eventually(lambda: child.restarts > restarts, f"{child.name} ends", 60)
    return time.monotonic() - began


@first_cases(
    1,
    ("server", "fault"),
    [("postgres", gone), ("postgres", silent), ("nats", silent)],
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
async def test_a_stopping_service_gives_up_what_it_cannot_reach(server: str, fault: Fault) -> None:
    async with running_run() as stack, fault(stack.stack.child(server)):
        children = [stack.stack.child(service) for service in SERVICES]
        seconds = await asyncio.gather(*map(seconds_to_end, children))
        notes = (stack.stack.options.state_dir / "logs" / "stack.log").read_text(encoding="utf-8")
        for child, taken in zip(children, seconds, strict=True):
            limit = DRAIN_SECONDS + (BEYOND_DRAIN_SECONDS if child is children[-1] else 0)
            assert taken < limit + NOTICED_SECONDS, (child.name, taken)
            assert f"{child.name} ended with exit code 0" in notes, notes
