"""Pages that watch many grids leave reads to others."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

from services.common.clock import SystemClock
from services.common.errors import DomainError, ErrorKind
from services.gateway.pages.live.views import _MAX_READS, LiveFragment, LiveViews
from tests.fakes.eventually import eventually


class Gone(DomainError):
    """It is not there."""

    kind = ErrorKind.NOT_FOUND


async def test_no_more_than_a_few_grids_are_read_at_a_time() -> None:
    grids = LiveViews(scheduler=cast("Any", None), clock=SystemClock())
    reading, most, has_read = 0, 0, 0
    may_end = asyncio.Event()

    async def read() -> LiveFragment:
        nonlocal reading, most, has_read
        reading += 1
        most = max(most, reading)
        await may_end.wait()
        reading -= 1
        has_read += 1
        raise Gone

    async with asyncio.timeout(30), AsyncExitStack() as pages:
        for number in range(5 * _MAX_READS):
            await pages.enter_async_context(grids.watched(f"/rollouts/{number}", read))
        await eventually(lambda: reading == _MAX_READS, "the first are read")
        may_end.set()
        await eventually(lambda: has_read == 5 * _MAX_READS, "all are read")
        assert most == _MAX_READS
    await grids.stop()
