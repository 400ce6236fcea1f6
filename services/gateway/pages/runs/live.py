"""Live progress for all pages that watch: one stream per run and sight of callers, rendered once per tick.

A page that is slow misses ticks and is never behind: all counts are absolute, and it gets the newest.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1.scheduler_service_pb2 import ListWorkersRequest, WatchRunRequest, WorkerInfo
from proctor.values.run import FINAL_NUMBERS
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends.calls import Results, Scheduler, Sight, present_sight
from services.gateway.pages.live.part import BROKEN, ENDED, LINGER_SECONDS, LivePart
from services.gateway.pages.runs.reads import ordered_tasks
from services.gateway.pages.runs.view import LiveView, live_view

log = get_logger()

# All pages of a run share what is read, and the scheduler shows it no more often.
_TICK_SECONDS = 0.2
# Pushes continue while nothing changes, because a page without pushes shows that it is stale.
_QUIET_SECONDS = 2.0
# Partial figures are computed from all answers of the run.
_FIGURES_SECONDS = 3.0
# How long the first push waits for them: without them the figures of the page would vanish and come back.
_FIRST_FIGURES_SECONDS = 1.0
_RETRY_SECONDS = 1.0
# Workers are listed twice in this time. Pushes stop while the scheduler has not responded for longer.
_SILENT_SECONDS = 2 * _FIGURES_SECONDS
# A watch lasts as long as pages are open: the default timeout of a call would cut it off.
_DAY_SECONDS = 24 * 3600.0
# As many as a chart is wide in small steps; older ones are thinned out.
_POINTS = 300

Render = Callable[[LiveView], str]
Point = tuple[float, float, float]
# A run, as callers of one sight see it.
Watched = tuple[str, Sight]


class LiveRun(LivePart):
    """The newest fragment of a run, and the points of its charts: time, samples and tokens per second."""

    def __init__(self) -> None:
        super().__init__()
        self.points: deque[Point] = deque(maxlen=_POINTS)


class LiveRuns:
    """All runs that pages watch."""

    def __init__(self, *, scheduler: Scheduler, results: Results, clock: Clock, render: Render) -> None:
        self._scheduler = scheduler
        self._results = results
        self._clock = clock
        self._render = render
        self._runs: dict[Watched, LiveRun] = {}
        self._watching: dict[Watched, int] = {}
        self._tasks: dict[Watched, asyncio.Task[None]] = {}

    def points(self, run_id: str) -> Sequence[Point]:
        """The points of a run that a page watches, or has just watched."""
        live = self._runs.get((run_id, present_sight()))
        return tuple(live.points) if live else ()

    @asynccontextmanager
    async def watched(self, run_id: str) -> AsyncIterator[LiveRun]:
        """Follows the run while at least one page does, and a little longer."""
        key = run_id, present_sight()
        self._watching[key] = self._watching.get(key, 0) + 1
        live = self._runs.get(key)
        if live is None:
            live = self._runs[key] = LiveRun()
            self._tasks[key] = asyncio.create_task(self._follow(key, live), name=f"live run {run_id}")
        try:
            yield live
        finally:
            self._watching[key] -= 1
            self._forget(key)

    async def stop(self) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, key: Watched, live: LiveRun) -> None:
        code = BROKEN
        try:
            feed = _RunFeed(self._scheduler, self._results, key[0], self._clock)
            await feed.drive(live, self._publish, self._is_left(key))
            # A page that came while the feed ended must connect again.
            code = BROKEN if self._watching[key] and not live.is_over and feed.is_known else ENDED
        finally:
            live.end(code)
            del self._runs[key], self._tasks[key]
            self._forget(key)

    def _forget(self, key: Watched) -> None:
        """Drops the count of a run that is neither watched nor followed."""
        if key not in self._runs and not self._watching[key]:
            del self._watching[key]

    def _is_left(self, key: Watched) -> Callable[[], bool]:
        """True once no page has watched for a while."""
        since: float | None = None

        def is_left() -> bool:
            nonlocal since
            if self._watching[key]:
                since = None
                return False
            since = self._clock.monotonic() if since is None else since
            return self._clock.monotonic() - since >= LINGER_SECONDS

        return is_left

    def _publish(self, live: LiveRun, feed: "_RunFeed") -> None:
        now = self._clock.now()
        view = live_view(feed.run, feed.summary, feed.workers, now, feed.ordered or ())
        _add_point(live, view, now)
        live.put(self._render(view), is_over=view.is_final)


class _RunFeed:
    """Latest known state of one run."""

    def __init__(self, scheduler: Scheduler, results: Results, run_id: str, clock: Clock) -> None:
        self._scheduler = scheduler
        self._results = results
        self._run_id = run_id
        self._clock = clock
        # When the scheduler last responded.
        self._received_at = clock.monotonic()
        self._came = asyncio.Event()
        self._renewed = asyncio.Event()
        self._listed = asyncio.Event()
        self._is_fresh = False
        # False once the scheduler has no such run.
        self.is_known = True
        self.run = run_pb2.Run()
        self.summary = summary_pb2.RunSummary()
        self.workers: Sequence[WorkerInfo] = ()
        # Names of its tasks before it is planned, once they were asked for.
        self.ordered: Sequence[str] | None = None

    async def drive(
        self, live: LiveRun, publish: Callable[[LiveRun, "_RunFeed"], None], is_left: Callable[[], bool]
    ) -> None:
        """Publishes until the run ends, does not exist or is not watched any more."""
        receiving = asyncio.create_task(self._receive(), name=f"watch {self._run_id}")
        # Beside the pushes: the figures of a large run take longer than a tick.
        renewing = asyncio.create_task(self._renew_figures(), name=f"figures of {self._run_id}")
        asking = asyncio.create_task(self._renew_workers(), name=f"workers of {self._run_id}")
        try:
            beginning = asyncio.gather(self._renewed.wait(), self._listed.wait())
            await _within(beginning, _FIRST_FIGURES_SECONDS)
            while not live.is_over and not is_left() and not (receiving.done() and not self._is_fresh):
                if self._is_fresh and self._is_watch_live():
                    publish(live, self)
                self._came.clear()
                await asyncio.sleep(_TICK_SECONDS)
                await _within(self._came.wait(), _QUIET_SECONDS - _TICK_SECONDS)
        finally:
            for task in (receiving, renewing, asking):
                task.cancel()
            await asyncio.gather(receiving, renewing, asking, return_exceptions=True)

    def _is_watch_live(self) -> bool:
        """Whether the scheduler responded lately. A watch is also silent while the run does not change."""
        return self._clock.monotonic() - self._received_at <= _SILENT_SECONDS

    async def _receive(self) -> None:
        """Connects again after faults; while the scheduler is away, nothing is published."""
        while self.run.state not in FINAL_NUMBERS:
            try:
                watch = self._scheduler.runs.WatchRun(
                    WatchRunRequest(run_id=self._run_id), timeout=_DAY_SECONDS
                )
                async for response in watch:
                    if self.ordered is None:
                        self.ordered = await ordered_tasks(self._scheduler, response.run)
                    self.run, self._is_fresh = response.run, True
                    self._received_at = self._clock.monotonic()
                    self._came.set()
            except DomainError as error:
                self._is_fresh = False
                if error.kind is ErrorKind.NOT_FOUND:
                    self.is_known = False
                    return
                log.info("run not watched", run_id=self._run_id, reason=error.reason)
            if self.run.state not in FINAL_NUMBERS:
                await asyncio.sleep(_RETRY_SECONDS)

    async def _renew_figures(self) -> None:
        """Runs until it is cancelled. While results is away, the last figures stay."""
        while True:
            try:
                self.summary = await self._results.summary(self._run_id)
            except DomainError as error:
                log.info("figures of a live run not renewed", run_id=self._run_id, reason=error.reason)
            self._renewed.set()
            await asyncio.sleep(_FIGURES_SECONDS)

    async def _renew_workers(self) -> None:
        """Runs until it is cancelled. The response shows that the scheduler works, too."""
        while True:
            try:
                listed = await self._scheduler.runs.ListWorkers(ListWorkersRequest(), timeout=_SILENT_SECONDS)
            except DomainError as error:
                log.info("workers of a live run not renewed", run_id=self._run_id, reason=error.reason)
            else:
                self.workers, self._received_at = listed.workers, self._clock.monotonic()
            self._listed.set()
            await asyncio.sleep(_FIGURES_SECONDS)


def _add_point(live: LiveRun, view: LiveView, now: datetime) -> None:
    """Adds at most one point a second."""
    at = now.timestamp()
    if view.status == "running" and (not live.points or at - live.points[-1][0] >= 1):
        live.points.append(
            (round(at, 1), round(view.samples_per_second or 0, 2), round(view.tokens_per_second or 0, 1))
        )


async def _within(waiting: Awaitable[object], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return
