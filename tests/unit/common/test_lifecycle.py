"""A process starts, serves and stops in visible steps."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.common.errors import DependencyUnavailable
from services.common.lifecycle import BackgroundLoops, RunningService, run_service


class Recorder:
    """A service that records its calls."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.failed = asyncio.Event()

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port's signature
        self.steps.append("ready" if is_ready else "not ready")
        if is_ready and not self.failed.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    async def wait_failed(self) -> None:
        await self.failed.wait()

    async def stop_taking_work(self) -> None:
        self.steps.append("stop taking work")

    async def drain(self) -> None:
        self.steps.append("drain")

    @asynccontextmanager
    async def context(self) -> AsyncIterator[RunningService]:
        self.steps.append("open")
        yield self
        self.steps.append("close")


async def test_sigterm_leads_through_the_five_steps() -> None:
    service = Recorder()

    codes: list[int] = []
    assert await run_service("recorder", service.context, on_stop=codes.append) == 0
    assert codes == [0]
    assert service.steps == ["open", "ready", "not ready", "stop taking work", "drain", "close"]


async def test_a_vital_task_that_ends_stops_the_process_with_an_error() -> None:
    service = Recorder()
    service.failed.set()

    codes: list[int] = []
    assert await run_service("recorder", service.context, on_stop=codes.append) == 1
    assert codes == [1]
    assert service.steps[-1] == "close"


async def test_sigterm_during_a_slow_start_takes_the_start_back() -> None:
    entered = asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[RunningService]:
        entered.set()
        await asyncio.Event().wait()
        yield Recorder()

    life = asyncio.ensure_future(run_service("slow", slow))
    await entered.wait()
    os.kill(os.getpid(), signal.SIGTERM)

    assert await asyncio.wait_for(life, 5) == 0


async def test_a_missing_dependency_ends_the_process_with_one_sentence() -> None:
    @asynccontextmanager
    async def orphan() -> AsyncIterator[RunningService]:
        raise DependencyUnavailable(dependency="postgres")
        yield Recorder()

    assert await run_service("orphan", orphan) == 1


async def test_a_loop_that_swallows_a_cancellation_ends_all_the_same() -> None:
    swallowed = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
        await asyncio.Event().wait()

    loops = BackgroundLoops({"stubborn": stubborn()})
    await asyncio.sleep(0)
    await asyncio.wait_for(loops.cancel(), 5)
    assert swallowed.is_set()


async def test_a_loop_that_ends_is_named() -> None:
    async def short() -> None:
        return

    loops = BackgroundLoops({"endless": asyncio.sleep(60), "short": short()})
    with pytest.raises(RuntimeError, match=r"should never end has ended: short$"):
        await asyncio.wait_for(loops.wait_failed(), 5)
    await loops.cancel()


async def test_the_error_of_a_loop_is_raised_as_it_is() -> None:
    async def broken() -> None:
        raise DependencyUnavailable(dependency="nats")

    loops = BackgroundLoops({"broken": broken(), "endless": asyncio.sleep(60)})
    with pytest.raises(DependencyUnavailable):
        await asyncio.wait_for(loops.wait_failed(), 5)
    await loops.cancel()
