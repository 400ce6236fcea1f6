"""Grids of rollouts that pages watch: read once for all of them, and pushed when a run changes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from proctor.v1.scheduler_service_pb2 import WatchRunRequest
from proctor.values.run import LIVE_STATES
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends.calls import Scheduler
from services.gateway.pages.live.part import BROKEN, ENDED, LivePart
from services.gateway.pages.rollouts.grid_view import GridView

log = get_logger()

# A grid is read from results as a whole, so no more often than this; a rollout takes minutes.
_TICK_SECONDS = 1.0
# Also while nothing changes: a page that gets nothing for longer says that it is stale.
_QUIET_SECONDS = 5.0
# A user may watch many parts of many orders: others read from results too.
_MAX_READS = 4
# A page that is loaded again finds its grid.
_LINGER_SECONDS = 8.0
# A watch lasts as long as pages are open: the usual timeout of a call would cut it off.
_DAY_SECONDS = 24 * 3600.0

Read = Callable[[], Awaitable[GridView]]
Render = Callable[[GridView], str]


@dataclass
class _Watched:
    """A grid with the number of pages that show it, and since when there are none."""

    part: LivePart
    pages: int = 0
    left_at: float = 0.0


class LiveGrids:
    """All grids that pages watch, by the address of their page."""

    def __init__(self, *, scheduler: Scheduler, clock: Clock, render: Render) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._render = render
        self._grids: dict[str, _Watched] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads = asyncio.Semaphore(_MAX_READS)

    @asynccontextmanager
    async def watched(self, address: str, read: Read) -> AsyncIterator[LivePart]:
        """Follows the grid while a page does, and a little longer. `read` gives its newest state."""
        grid = self._grids.get(address)
        if grid is None:
            grid = self._grids[address] = _Watched(LivePart())
            task = asyncio.create_task(self._follow(address, grid, read), name=f"live {address}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        grid.pages += 1
        try:
            yield grid.part
        finally:
            grid.pages -= 1
            grid.left_at = self._clock.monotonic()

    async def stop(self) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, address: str, grid: _Watched, read: Read) -> None:
        code, changed = BROKEN, asyncio.Event()
        watches: dict[str, asyncio.Task[None]] = {}
        try:
            while not grid.part.is_over and not self._is_left(grid):
                view = await self._newest(address, read)
                if view:
                    grid.part.put(self._render(view), is_over=not view.is_live)
                    self._watch(watches, view, changed)
                await asyncio.sleep(_TICK_SECONDS)
                await _within(changed, _QUIET_SECONDS - _TICK_SECONDS)
                changed.clear()
            code = ENDED
        except DomainError as error:
            log.info("rollouts not watched", page=address, reason=error.reason)
            code = ENDED
        finally:
            grid.part.end(code)
            del self._grids[address]
            for task in watches.values():
                task.cancel()
            await asyncio.gather(*watches.values(), return_exceptions=True)

    def _is_left(self, grid: _Watched) -> bool:
        """True once no page has watched for a while."""
        return not grid.pages and self._clock.monotonic() - grid.left_at >= _LINGER_SECONDS

    async def _newest(self, address: str, read: Read) -> GridView | None:
        """None while a service is away: pages then say since when they are stale. Raises NOT_FOUND."""
        try:
            async with self._reads:
                return await read()
        except DomainError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                raise
            log.info("rollouts not read", page=address, reason=error.reason)
            return None

    def _watch(self, watches: dict[str, asyncio.Task[None]], view: GridView, changed: asyncio.Event) -> None:
        """One stream for each run that goes."""
        for run_id in _live_runs(view):
            if run_id not in watches or watches[run_id].done():
                watches[run_id] = asyncio.create_task(self._changes(run_id, changed), name=f"watch {run_id}")

    async def _changes(self, run_id: str, changed: asyncio.Event) -> None:
        """Ends with the run or the stream. A run that goes on is watched anew after the quiet time."""
        request = WatchRunRequest(run_id=run_id)
        try:
            async for _ in self._scheduler.runs.WatchRun(request, timeout=_DAY_SECONDS):
                changed.set()
        except DomainError as error:
            log.info("run not watched", run_id=run_id, reason=error.reason)


def _live_runs(view: GridView) -> Iterable[str]:
    return (model.run.run_id for model in view.models if model.run.state in LIVE_STATES)


async def _within(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return
