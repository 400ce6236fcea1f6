"""Pages that watch many grids leave reads to others."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from services.common.clock import SystemClock
from services.common.errors import DomainError, ErrorKind
from services.gateway.pages.live import views
from services.gateway.pages.live.views import _MAX_READS, LiveViews, PartAddress, PushedView
from tests.fakes.eventually import eventually


class Gone(DomainError):
    """It is not there."""

    kind = ErrorKind.NOT_FOUND


async def test_no_more_than_a_few_grids_are_read_at_a_time() -> None:
    grids = LiveViews(clock=SystemClock())
    reading, most, has_read = 0, 0, 0
    may_end = asyncio.Event()

    async def read() -> PushedView:
        nonlocal reading, most, has_read
        reading += 1
        most = max(most, reading)
        await may_end.wait()
        reading -= 1
        has_read += 1
        raise Gone

    async with asyncio.timeout(30), AsyncExitStack() as pages:
        for number in range(5 * _MAX_READS):
            await pages.enter_async_context(grids.watched(PartAddress("grid", f"{number}"), read, str))
        await eventually(lambda: reading == _MAX_READS, "the first are read")
        may_end.set()
        await eventually(lambda: has_read == 5 * _MAX_READS, "all are read")
        assert most == _MAX_READS
    await grids.stop()


async def test_parts_that_are_not_answered_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """And are read again after a while."""
    monkeypatch.setattr(views, "_READ_TIMEOUT_SECONDS", 0.1)
    parts, asked = LiveViews(clock=SystemClock()), 0

    async def hangs() -> PushedView:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()
        raise AssertionError

    async def answers() -> PushedView:
        return PushedView("list", is_over=True)

    async with asyncio.timeout(30), AsyncExitStack() as pages:
        for number in range(2 * _MAX_READS):
            await pages.enter_async_context(parts.watched(PartAddress("grid", f"{number}"), hangs, str))
        part = await pages.enter_async_context(parts.watched(PartAddress("list", ""), answers, str))
        await part.newer(0)
        assert part.fragment == "list"
        await eventually(lambda: asked > 4 * _MAX_READS, "the grids are asked for again")
    await parts.stop()
