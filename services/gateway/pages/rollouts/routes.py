"""Orders of rollouts, the grid of an order or a run, and one rollout with its trajectory."""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from services.gateway.auth.identity import Now
from services.gateway.backends.calls import BackendCalls, SchedulerCalls
from services.gateway.http.parameters import JobId
from services.gateway.pages.filtered_lists import show_list
from services.gateway.pages.page import Page, PageOf
from services.gateway.pages.rollouts.grid_view import GridView
from services.gateway.pages.rollouts.reads import (
    OrderFilters,
    RolloutAddress,
    one_rollout,
    order_grid,
    order_list,
    run_grid,
    whole_number,
)

_EVERY = ("1", "5", "30", "60")

router = APIRouter(include_in_schema=False)


@router.get("/rollouts")
async def list_orders(page: PageOf, scheduler: SchedulerCalls, now: Now, filters: OrderFilters) -> Response:
    view = await order_list(scheduler, filters, now, is_whole=not page.is_part)
    return show_list(page, "rollouts/list", view)


@dataclass(frozen=True, slots=True)
class GridQuery:
    """`first`: number of the first task of the page, from 0. `every`: seconds between reloads, if set."""

    first: Annotated[str, Query(alias="from", max_length=12)] = ""
    every: Annotated[str, Query(max_length=12)] = ""

    @property
    def index(self) -> int:
        """The task's index; an address that names no task begins at the first."""
        return whole_number(self.first)


Grid = Annotated[GridQuery, Depends()]


@router.get("/rollouts/{order_id}")
async def show_order(
    page: PageOf, backends: BackendCalls, now: Now, order_id: Annotated[str, Path(max_length=64)], query: Grid
) -> Response:
    view = await order_grid(backends, order_id, query.index, now)
    return _shown(page, view, query)


@router.get("/runs/{job_id}/rollouts")
async def show_run(page: PageOf, backends: BackendCalls, now: Now, job_id: JobId, query: Grid) -> Response:
    view = await run_grid(backends, job_id, query.index, now)
    return _shown(page, view, query)


def _shown(page: Page, view: GridView, query: GridQuery) -> Response:
    every = query.every if query.every in _EVERY else ""
    return page.show("rollouts/grid", replace(view, every=every), part="rollouts/grid_part")


@router.get("/runs/{job_id}/rollouts/{task}/{rollout}")
async def show_rollout(
    page: PageOf, backends: BackendCalls, now: Now, at: Annotated[RolloutAddress, Depends()]
) -> Response:
    view = await one_rollout(backends, at, now)
    return page.show("rollouts/rollout", view, part="rollouts/rollout_part")
