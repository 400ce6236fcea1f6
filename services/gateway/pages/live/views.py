"""Parts of pages that follow several runs: read once for all who watch, and pushed when a run changes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from proctor.v1.scheduler_service_pb2 import WatchRunRequest
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends.calls import Scheduler
from services.gateway.pages.live.part import BROKEN, ENDED, LivePart

log = get_logger()

# Each push reads the part as a whole, so there is none more often than this.
_TICK_SECONDS = 1.0
# Also while nothing changes: a page that gets nothing for longer says that it is stale.
_QUIET_SECONDS = 5.0
# A user may watch many parts of many pages: others read from results too.
_MAX_READS = 4
# A page that is loaded again finds its part.
_LINGER_SECONDS = 8.0
# A watch lasts as long as pages are open: the usual timeout of a call would cut it off.
_DAY_SECONDS = 24 * 3600.0
# Of one part. What more runs do is shown after the quiet time.
_MAX_WATCHES = 20


@dataclass(frozen=True, slots=True)
class LiveFragment:
    """A part as it is now. `live_runs` may change it at any time; once it `is_over` nothing does."""

    html: str
    live_runs: Sequence[str] = ()
    is_over: bool = False


Read = Callable[[], Awaitable[LiveFragment]]


@dataclass
class _Watched:
    """A part with the number of pages that show it, and since when there are none."""

    part: LivePart
    pages: int = 0
    left_at: float = 0.0


class LiveViews:
    """All such parts that pages watch, by the address of their socket."""

    def __init__(self, *, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._parts: dict[str, _Watched] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads = asyncio.Semaphore(_MAX_READS)

    @asynccontextmanager
    async def watched(self, address: str, read: Read) -> AsyncIterator[LivePart]:
        """Follows the part while a page does, and a little longer. `read` gives its newest state."""
        watched = self._parts.get(address)
        if watched is None:
            watched = self._parts[address] = _Watched(LivePart())
            task = asyncio.create_task(self._follow(address, watched, read), name=f"live {address}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        watched.pages += 1
        try:
            yield watched.part
        finally:
            watched.pages -= 1
            watched.left_at = self._clock.monotonic()

    async def stop(self) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, address: str, watched: _Watched, read: Read) -> None:
        code, changed = BROKEN, asyncio.Event()
        watches: dict[str, asyncio.Task[None]] = {}
        try:
            while not watched.part.is_over and not self._is_left(watched):
                view = await self._newest(address, read)
                if view:
                    watched.part.put(view.html, is_over=view.is_over)
                    self._watch(watches, view.live_runs[:_MAX_WATCHES], changed)
                await asyncio.sleep(_TICK_SECONDS)
                await _within(changed, _QUIET_SECONDS - _TICK_SECONDS)
                changed.clear()
            code = ENDED
        except DomainError as error:
            log.info("page not watched", page=address, reason=error.reason)
            code = ENDED
        finally:
            watched.part.end(code)
            del self._parts[address]
            for task in watches.values():
                task.cancel()
            await asyncio.gather(*watches.values(), return_exceptions=True)

    def _is_left(self, watched: _Watched) -> bool:
        """True once no page has watched for a while."""
        return not watched.pages and self._clock.monotonic() - watched.left_at >= _LINGER_SECONDS

    async def _newest(self, address: str, read: Read) -> LiveFragment | None:
        """None while a service is away: pages then say since when they are stale. Raises NOT_FOUND."""
        try:
            async with self._reads:
                return await read()
        except DomainError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                raise
            log.info("live page not read", page=address, reason=error.reason)
            return None

    def _watch(
        self, watches: dict[str, asyncio.Task[None]], live_runs: Sequence[str], changed: asyncio.Event
    ) -> None:
        """One stream for each run that goes; those of runs that left the part end."""
        for run_id in watches.keys() - set(live_runs):
            watches.pop(run_id).cancel()
        for run_id in live_runs:
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


async def _within(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return
