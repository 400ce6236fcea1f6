"""The sockets of pages of rollouts: the list of orders, and grids and rollouts while they may change."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Path, WebSocket

from services.gateway.backends.calls import Backends
from services.gateway.http.parameters import JobId
from services.gateway.pages.filtered_lists import push_list
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
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
async def watch_orders(socket: WebSocket, filters: OrderFilters, build: str = "") -> None:
    """`build`, here and below, is the digest of the files that the page was made with."""
    read = partial(order_list, socket.app.state.scheduler)
    await push_list(socket, build, "rollouts/list", filters, read)


@router.websocket("/rollouts/{order_id}/socket")
async def watch_order(
    socket: WebSocket, order_id: Annotated[str, Path(max_length=64)], query: Grid, build: str = ""
) -> None:
    state = socket.app.state

    async def read() -> PushedView:
        backends = Backends(state.scheduler, state.results)
        return _of_grid(await order_grid(backends, order_id, query.index, state.clock.now()))

    await push_view(socket, build, PartAddress("rollouts/grid_part", f"/{order_id}?from={query.index}"), read)


@router.websocket("/runs/{job_id}/rollouts/socket")
async def watch_run(socket: WebSocket, job_id: JobId, query: Grid, build: str = "") -> None:
    state = socket.app.state

    async def read() -> PushedView:
        backends = Backends(state.scheduler, state.results)
        return _of_grid(await run_grid(backends, job_id, query.index, state.clock.now()))

    at = PartAddress("rollouts/grid_part", f"/runs/{job_id}?from={query.index}")
    await push_view(socket, build, at, read)


@router.websocket("/runs/{job_id}/rollouts/{task}/{rollout}/socket")
async def watch_rollout(socket: WebSocket, at: Annotated[RolloutAddress, Depends()], build: str = "") -> None:
    state = socket.app.state

    async def read() -> PushedView:
        view = await one_rollout(Backends(state.scheduler, state.results), at, state.clock.now())
        return PushedView(view, is_over=not view.is_live)

    await push_view(socket, build, PartAddress("rollouts/pushed_rollout", at.path), read)


def _of_grid(view: GridView) -> PushedView:
    return PushedView(view, is_over=not view.is_live)
