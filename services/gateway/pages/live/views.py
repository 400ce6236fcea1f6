"""Parts of pages that are read every few seconds, once for all who see the same, and pushed."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from re import compile as pattern

from fastapi import WebSocket

from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends.calls import Sight, present_sight
from services.gateway.pages.html import Html
from services.gateway.pages.live.part import BROKEN, ENDED, LINGER_SECONDS, LivePart, push

log = get_logger()

# A page shows that it is stale if nothing comes for longer than its `data-every`, which assumes this value.
_READ_EVERY_SECONDS = 2.0
# For a page that has just come.
_MIN_SECONDS = 1.0
_READ_TIMEOUT_SECONDS = 5.0
# A limit per template, so that parts that wait for a service do not block parts of other templates.
_MAX_READS = 4
# The time of a read, which alone is not a change.
_TICK = pattern(r'<data id="tick"[^>]*>')


@dataclass(frozen=True, slots=True)
class PushedView:
    """The `view` of a template as it is now. Once it `is_over`, nothing changes it."""

    view: object
    is_over: bool = False


Read = Callable[[], Awaitable[PushedView]]
Render = Callable[[object], str]


@dataclass(frozen=True, slots=True)
class PartAddress:
    """The key of a part: its template, and the path and filters that the page understands."""

    template: str
    path: str


@dataclass
class _Watched:
    """A part with the number of pages that show it, and since when there are none."""

    part: LivePart = field(default_factory=LivePart)
    pages: int = 0
    left_at: float = 0.0
    joined: asyncio.Event = field(default_factory=asyncio.Event)


class LiveViews:
    """All such parts that pages watch."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._parts: dict[tuple[PartAddress, Sight], _Watched] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_MAX_READS))

    @asynccontextmanager
    async def watched(self, address: PartAddress, read: Read, render: Render) -> AsyncIterator[LivePart]:
        """Follows the part while a page does, and a little longer. `read` gives its newest state."""
        key = address, present_sight()
        watched = self._parts.get(key)
        if watched is None:
            watched = self._parts[key] = _Watched()
            following = self._follow(key, watched, read, render)
            task = asyncio.create_task(following, name=f"live {address.path}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        watched.pages += 1
        watched.joined.set()
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

    async def _follow(
        self, key: tuple[PartAddress, Sight], watched: _Watched, read: Read, render: Render
    ) -> None:
        (address, _), code, part = key, BROKEN, watched.part
        try:
            while not self._is_left(watched):
                watched.joined.clear()
                found = await self._newest(address, part, read)
                if found:
                    html = render(found.view)
                    has_changed = _TICK.sub("", html) != _TICK.sub("", part.fragment)
                    part.put(html, is_over=found.is_over, has_changed=has_changed)
                    if found.is_over:
                        break
                await asyncio.sleep(_MIN_SECONDS)
                await _within(watched.joined, _READ_EVERY_SECONDS - _MIN_SECONDS)
            code = ENDED
        except DomainError as error:
            log.info("page not watched", page=address.path, reason=error.reason)
            code = ENDED
        finally:
            part.end(code)
            del self._parts[key]

    def _is_left(self, watched: _Watched) -> bool:
        """True once no page has watched for a while."""
        return not watched.pages and self._clock.monotonic() - watched.left_at >= LINGER_SECONDS

    async def _newest(self, address: PartAddress, part: LivePart, read: Read) -> PushedView | None:
        """None while a service is away: pages then say since when they are stale. Raises NOT_FOUND."""
        async with self._reads[address.template]:
            part.begun += 1
            try:
                async with asyncio.timeout(_READ_TIMEOUT_SECONDS):
                    return await read()
            except DomainError as error:
                if error.kind is ErrorKind.NOT_FOUND:
                    raise
                log.info("live page not read", page=address.path, reason=error.reason)
            except TimeoutError:
                log.info("live page not read", page=address.path, reason="TIMEOUT")
        return None


async def _within(joined: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await joined.wait()
    except TimeoutError:
        return


async def push_view(socket: WebSocket, build: str, address: PartAddress, read: Read) -> None:
    """Pushes a part to a page. `build` is the digest of the files that the page was made with."""
    html: Html = socket.app.state.html
    views: LiveViews = socket.app.state.live_views
    render = html.renderer(address.template)
    await push(socket, build, views.watched(address, read, render))
