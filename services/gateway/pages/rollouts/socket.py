"""The sockets of live pages of rollouts: the newest part of a page, until what it shows has ended."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, WebSocket

from services.gateway.backends.calls import Backends
from services.gateway.http.parameters import JobId
from services.gateway.pages.live.socket import PushedView, push_view
from services.gateway.pages.rollouts.grid_view import GridView
from services.gateway.pages.rollouts.reads import (
    OrderFilters,
    RolloutAddress,
    one_rollout,
    order_grid,
    order_list,
    run_grid,
)
from services.gateway.pages.rollouts.routes import Grid

router = APIRouter()


@router.websocket("/rollouts/socket")
async def watch_orders(
    socket: WebSocket, filters: Annotated[OrderFilters, Depends()], build: str = ""
) -> None:
    state = socket.app.state

    async def read() -> PushedView:
        view = await order_list(state.scheduler, filters, state.clock.now())
        return PushedView(view, view.live_runs)

    await push_view(socket, build, "rollouts/list_rows", read)


@router.websocket("/rollouts/{order_id}/socket")
async def watch_order(
    socket: WebSocket, order_id: Annotated[str, Path(max_length=64)], query: Grid, build: str = ""
) -> None:
    state = socket.app.state

    async def read() -> PushedView:
        backends = Backends(state.scheduler, state.results)
        return _of_grid(await order_grid(backends, order_id, query.index, state.clock.now()))

    await push_view(socket, build, "rollouts/grid_part", read)


@router.websocket("/runs/{job_id}/rollouts/socket")
async def watch_run(socket: WebSocket, job_id: JobId, query: Grid, build: str = "") -> None:
    state = socket.app.state

    async def read() -> PushedView:
        backends = Backends(state.scheduler, state.results)
        return _of_grid(await run_grid(backends, job_id, query.index, state.clock.now()))

    await push_view(socket, build, "rollouts/grid_part", read)


@router.websocket("/runs/{job_id}/rollouts/{task}/{rollout}/socket")
async def watch_rollout(socket: WebSocket, at: Annotated[RolloutAddress, Depends()], build: str = "") -> None:
    state = socket.app.state

    async def read() -> PushedView:
        view = await one_rollout(Backends(state.scheduler, state.results), at, state.clock.now())
        return PushedView(view, [at.job_id], is_over=not view.is_live)

    await push_view(socket, build, "rollouts/pushed_rollout", read)


def _of_grid(view: GridView) -> PushedView:
    return PushedView(view, view.live_runs, is_over=not view.live_runs)
