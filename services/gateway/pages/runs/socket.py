"""The socket of a live page: the newest fragment of its run, until the run has ended."""

import asyncio
import contextlib

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from services.gateway.http.parameters import JobId
from services.gateway.pages.html import Html
from services.gateway.pages.runs.live import ENDED, LiveRun, LiveRuns

router = APIRouter()


@router.websocket("/runs/{job_id}/socket")
async def watch(socket: WebSocket, job_id: JobId, build: str = "") -> None:
    """`build` is the digest of the files that the page was made with."""
    live_runs: LiveRuns = socket.app.state.live_runs
    html: Html = socket.app.state.html
    await socket.accept()
    if build != html.build:
        # Markup of another version does not fit into the page.
        await socket.send_text(html.render("other_build"))
        await socket.close(ENDED)
        return
    async with live_runs.watched(job_id) as live:
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


async def _send(socket: WebSocket, live: LiveRun) -> None:
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
