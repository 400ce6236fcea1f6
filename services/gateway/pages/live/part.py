"""A part of a page that is pushed: its newest fragment, for all sockets that show it."""

import asyncio
import contextlib
from contextlib import AbstractAsyncContextManager

from fastapi import WebSocket, WebSocketDisconnect

from services.gateway.pages.html import Html

# Codes that a socket is closed with. After the second one a page connects again.
ENDED = 1000
# RFC 6455, section 7.4.1: the server met an unexpected condition. The page then connects again.
BROKEN = 1011
# How long a part is kept after its last page has left, so that a page that is loaded again finds it.
LINGER_SECONDS = 8.0
# A key is checked when a page connects. After this time the page must connect again.
_MAX_AGE_SECONDS = 300.0
# A message that replaces nothing: it shows that the content of the page is current.
_UNCHANGED = {"is_changed": False}


class LivePart:
    """The newest fragment. A page that is slow misses fragments and is never behind.

    `version` is the number of the read that it is of, `begun` that of the last read that began, and `changed`
    that of the first one which gave this fragment.
    """

    def __init__(self) -> None:
        self.version = self.begun = self.changed = 0
        self.fragment = ""
        self.is_over = False
        self.code = ENDED
        self._renewed = asyncio.Event()

    def put(self, fragment: str, *, is_over: bool, has_changed: bool = True) -> None:
        self.version = max(self.version + 1, self.begun)
        self.fragment, self.is_over = fragment, is_over
        if has_changed:
            self.changed = self.version
        self._notify()

    def end(self, code: int) -> None:
        """The subject ended or does not exist; no further updates."""
        self.is_over, self.code = True, code
        self._notify()

    async def newer(self, version: int) -> None:
        """Waits for a version above `version`, or the end."""
        while self.version <= version and not self.is_over:
            await self._renewed.wait()

    def _notify(self) -> None:
        renewed, self._renewed = self._renewed, asyncio.Event()
        renewed.set()


async def push(socket: WebSocket, build: str, watched: AbstractAsyncContextManager[LivePart]) -> None:
    """Sends the fragments to a page until it leaves or no further updates come.

    `build` is the digest of the files that the page was made with.
    """
    html: Html = socket.app.state.html
    await socket.accept()
    if build != html.build:
        # Markup of another version does not fit into the page, which keeps what it shows.
        notice = {"content": html.render("other_build"), "target": "#stale", "swap": "beforebegin"}
        await socket.send_json(notice)
        await socket.close(ENDED)
        return
    async with watched as live:
        sending = asyncio.create_task(_send(socket, live), name="send live parts")
        leaving = asyncio.create_task(_left(socket), name="wait for the page to leave")
        try:
            done, _ = await asyncio.wait(
                {sending, leaving}, timeout=_MAX_AGE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        # The page may have gone first.
        await socket.close(live.code if done else BROKEN)


async def _send(socket: WebSocket, live: LivePart) -> None:
    """The first fragment is of a read that began after the page came: others may be older than the page."""
    seen, changed = live.begun, 0
    while True:
        if live.fragment and live.version > seen:
            seen = live.version
            await (
                socket.send_text(live.fragment) if live.changed > changed else socket.send_json(_UNCHANGED)
            )
            changed = live.changed
        if live.is_over:
            return
        await live.newer(seen)


async def _left(socket: WebSocket) -> None:
    """Returns when the page is gone; pages send nothing."""
    try:
        while True:
            await socket.receive()
    except (WebSocketDisconnect, RuntimeError):
        return
