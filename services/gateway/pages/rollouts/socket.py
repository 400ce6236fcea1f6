"""The sockets of live grids: the newest fragment of an order or of one of its runs, until all have ended."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, WebSocket

from services.gateway.backends.calls import Backends
from services.gateway.http.parameters import JobId
from services.gateway.pages.live.part import push
from services.gateway.pages.rollouts.grid_view import GridView
from services.gateway.pages.rollouts.live import LiveGrids
from services.gateway.pages.rollouts.routes import Grid, order_grid, run_grid

router = APIRouter()


@router.websocket("/rollouts/{order_id}/socket")
async def watch_order(
    socket: WebSocket, order_id: Annotated[str, Path(max_length=64)], query: Grid, build: str = ""
) -> None:
    """`build` is the digest of the files that the page was made with."""
    grids: LiveGrids = socket.app.state.live_grids
    address = f"/rollouts/{order_id}?from={query.index}"
    await push(socket, build, grids.watched(address, partial(_order, socket, order_id, query.index)))


@router.websocket("/runs/{job_id}/rollouts/socket")
async def watch_run(socket: WebSocket, job_id: JobId, query: Grid, build: str = "") -> None:
    grids: LiveGrids = socket.app.state.live_grids
    address = f"/runs/{job_id}/rollouts?from={query.index}"
    await push(socket, build, grids.watched(address, partial(_run, socket, job_id, query.index)))


async def _order(socket: WebSocket, order_id: str, index: int) -> GridView:
    state = socket.app.state
    return await order_grid(Backends(state.scheduler, state.results), order_id, index, state.clock.now())


async def _run(socket: WebSocket, run_id: str, index: int) -> GridView:
    state = socket.app.state
    return await run_grid(Backends(state.scheduler, state.results), run_id, index, state.clock.now())
