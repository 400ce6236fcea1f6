"""The socket of a page whose part is pushed from a read of its view."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fastapi import WebSocket

from services.gateway.pages.html import Html
from services.gateway.pages.live.part import push
from services.gateway.pages.live.views import LiveFragment, LiveViews


@dataclass(frozen=True, slots=True)
class PushedView:
    """The `view` of a template, the runs that may change it, and whether nothing does any more."""

    view: object
    live_runs: Sequence[str] = ()
    is_over: bool = False


async def push_view(
    socket: WebSocket, build: str, template: str, read: Callable[[], Awaitable[PushedView]]
) -> None:
    """Pages of one address share what is read. `build` is the digest of the files that a page has."""
    html: Html = socket.app.state.html
    views: LiveViews = socket.app.state.live_views

    async def fragment() -> LiveFragment:
        found = await read()
        return LiveFragment(html.render(template, view=found.view), found.live_runs, found.is_over)

    await push(socket, build, views.watched(f"{socket.url.path}?{socket.url.query}", fragment))
