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


class LivePart:
    """The newest fragment. A page that is slow misses fragments and is never behind."""

    def __init__(self) -> None:
        self.version = 0
        self.fragment = ""
        self.is_over = False
        self.code = ENDED
        self._changed = asyncio.Event()

    def put(self, fragment: str, *, is_over: bool) -> None:
        self.fragment, self.is_over = fragment, is_over
        self._notify()

    def end(self, code: int) -> None:
        """Nothing follows: what is shown has ended, or does not exist."""
        self.is_over, self.code = True, code
        self._notify()

    async def newer(self, version: int) -> int:
        """The newest version, once it is above `version`."""
        while self.version <= version:
            await self._changed.wait()
        return self.version

    def _notify(self) -> None:
        self.version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


async def push(socket: WebSocket, build: str, watched: AbstractAsyncContextManager[LivePart]) -> None:
    """Sends the fragments to a page until it leaves or nothing follows.

    `build` is the digest of the files that the page was made with.
    """
    html: Html = socket.app.state.html
    await socket.accept()
    if build != html.build:
        # Markup of another version does not fit into the page.
        await socket.send_text(html.render("other_build"))
        await socket.close(ENDED)
        return
    async with watched as live:
        sending = asyncio.create_task(_send(socket, live), name="send live parts")
        leaving = asyncio.create_task(_left(socket), name="wait for the page to leave")
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        # The page may have gone first.
        await socket.close(live.code)


async def _send(socket: WebSocket, live: LivePart) -> None:
    sent = 0
    while True:
        if live.fragment and live.version > sent:
            sent = live.version
            await socket.send_text(live.fragment)
        if live.is_over:
            return
        await live.newer(sent)


async def _left(socket: WebSocket) -> None:
    """Returns when the page is gone; pages send nothing."""
    try:
        while True:
            await socket.receive()
    except (WebSocketDisconnect, RuntimeError):
        return
