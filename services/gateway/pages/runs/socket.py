"""The socket of a live page: the newest fragment of its run, until the run has ended."""

from fastapi import APIRouter, WebSocket

from services.gateway.http.parameters import JobId
from services.gateway.pages.live.part import push
from services.gateway.pages.runs.live import LiveRuns

router = APIRouter()


@router.websocket("/runs/{job_id}/socket")
async def watch(socket: WebSocket, job_id: JobId, build: str = "") -> None:
    """`build` is the digest of the files that the page was made with."""
    live_runs: LiveRuns = socket.app.state.live_runs
    await push(socket, build, live_runs.watched(job_id))
