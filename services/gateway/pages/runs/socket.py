"""Sockets of live pages: the list of runs, and the newest fragment of a run until it has ended."""

from typing import Annotated

from fastapi import APIRouter, Depends, WebSocket

from services.gateway.http.parameters import JobId
from services.gateway.pages.live.part import push
from services.gateway.pages.live.socket import PushedView, push_view
from services.gateway.pages.runs.live import LiveRuns
from services.gateway.pages.runs.reads import RunFilters, run_list

router = APIRouter()


@router.websocket("/runs/socket")
async def watch_list(socket: WebSocket, filters: Annotated[RunFilters, Depends()], build: str = "") -> None:
    """`build`, here and below, is the digest of the files that the page was made with."""
    state = socket.app.state

    async def read() -> PushedView:
        view = await run_list(state.scheduler, filters, state.clock.now())
        return PushedView(view, view.live_runs)

    await push_view(socket, build, "runs/list_rows", read)


@router.websocket("/runs/{job_id}/socket")
async def watch(socket: WebSocket, job_id: JobId, build: str = "") -> None:
    live_runs: LiveRuns = socket.app.state.live_runs
    await push(socket, build, live_runs.watched(job_id))
