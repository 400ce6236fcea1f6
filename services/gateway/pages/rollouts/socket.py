"""The sockets of live pages of rollouts: the newest part of a page, until what it shows has ended."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, WebSocket

from services.gateway.backends.calls import Backends
from services.gateway.http.parameters import JobId
from services.gateway.pages.html import Html
from services.gateway.pages.live.part import push
from services.gateway.pages.live.views import LiveFragment, LiveViews, Read
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
    """`build`, here and below, is the digest of the files that the page was made with."""
    address = f"/rollouts?{urlencode(filters.named())}"
    await _push(socket, build, address, partial(_orders, socket, filters))


@router.websocket("/rollouts/{order_id}/socket")
async def watch_order(
    socket: WebSocket, order_id: Annotated[str, Path(max_length=64)], query: Grid, build: str = ""
) -> None:
    address = f"/rollouts/{order_id}?from={query.index}"
    await _push(socket, build, address, partial(_order, socket, order_id, query.index))


@router.websocket("/runs/{job_id}/rollouts/socket")
async def watch_run(socket: WebSocket, job_id: JobId, query: Grid, build: str = "") -> None:
    address = f"/runs/{job_id}/rollouts?from={query.index}"
    await _push(socket, build, address, partial(_run, socket, job_id, query.index))


@router.websocket("/runs/{job_id}/rollouts/{task}/{rollout}/socket")
async def watch_rollout(socket: WebSocket, at: Annotated[RolloutAddress, Depends()], build: str = "") -> None:
    await _push(socket, build, at.path, partial(_rollout, socket, at))


async def _push(socket: WebSocket, build: str, address: str, read: Read) -> None:
    views: LiveViews = socket.app.state.live_views
    await push(socket, build, views.watched(address, read))


def _shown(socket: WebSocket, template: str, view: object, runs: Sequence[str]) -> LiveFragment:
    html: Html = socket.app.state.html
    return LiveFragment(html.render(template, view=view), runs)


async def _orders(socket: WebSocket, filters: OrderFilters) -> LiveFragment:
    state = socket.app.state
    view = await order_list(state.scheduler, filters, state.clock.now())
    return _shown(socket, "rollouts/pushed_list", view, view.live_runs)


async def _order(socket: WebSocket, order_id: str, index: int) -> LiveFragment:
    state = socket.app.state
    view = await order_grid(Backends(state.scheduler, state.results), order_id, index, state.clock.now())
    return _shown(socket, "rollouts/grid_part", view, view.live_runs)


async def _run(socket: WebSocket, run_id: str, index: int) -> LiveFragment:
    state = socket.app.state
    view = await run_grid(Backends(state.scheduler, state.results), run_id, index, state.clock.now())
    return _shown(socket, "rollouts/grid_part", view, view.live_runs)


async def _rollout(socket: WebSocket, at: RolloutAddress) -> LiveFragment:
    state = socket.app.state
    view = await one_rollout(Backends(state.scheduler, state.results), at, state.clock.now())
    return _shown(socket, "rollouts/pushed_rollout", view, [at.job_id] if view.is_live else [])
