"""Orders of rollouts, the grid of an order or a run, and one rollout with its transcript."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import rollout_service_pb2 as rollouts_pb2
from proctor.wire.enums import value_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.models import full_model
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import (
    BackendCalls,
    Backends,
    Results,
    Scheduler,
    SchedulerCalls,
)
from services.gateway.http.errors import NoSuchRollout, NotOfRollouts
from services.gateway.http.parameters import INT32_MAX, JobId
from services.gateway.pages.page import Page, PageOf
from services.gateway.pages.rollouts.grid_view import GridView, RunPart, grid_view, tasks_per_page
from services.gateway.pages.rollouts.list_view import STATES, order_list_view
from services.gateway.pages.rollouts.rollout_view import RolloutPosition, rollout_view
from services.gateway.pages.runs_table import run_row

_PAGE_SIZE = 30
_OUTCOMES_AT_A_TIME = 1000
_EVERY = ("5", "30", "60")

router = APIRouter(include_in_schema=False)


class OrderFilters:
    """Filters of the list, as its address has them. Unknown ones are ignored: old links stay valid."""

    def __init__(
        self,
        state: str = "",
        name: Annotated[str, Query(max_length=128)] = "",
        model: Annotated[str, Query(max_length=512)] = "",
        after: Annotated[str, Query(max_length=512)] = "",
    ) -> None:
        self.state = state if state in STATES else ""
        self.name, self.model, self.after = name.strip(), model.strip(), after

    def named(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("state", "name", "model", "after")}


@router.get("/rollouts")
async def list_orders(
    page: PageOf, scheduler: SchedulerCalls, now: Now, filters: Annotated[OrderFilters, Depends()]
) -> Response:
    request = rollouts_pb2.ListRolloutsRequest(
        page_size=_PAGE_SIZE,
        page_token=filters.after,
        state=value_of(run_pb2.RunState, filters.state, unset=""),
        name=_known_name(filters.name),
        model=await full_model(scheduler, filters.model),
    )
    view = order_list_view(await scheduler.rollouts.ListRollouts(request), filters.named(), now)
    response = page.show("rollouts/list", view, part="rollouts/list_part")
    if page.is_part and not page.is_at(view.link(after=filters.after)):
        response.headers["HX-Push-Url"] = view.link(after=filters.after)
    return response


@dataclass(frozen=True, slots=True)
class GridQuery:
    """`first`: number of the first task of the page, from 1. `every`: renewed so often, instead of pushed."""

    first: Annotated[str, Query(alias="from", max_length=12)] = ""
    every: Annotated[str, Query(max_length=12)] = ""

    @property
    def index(self) -> int:
        """The task's index; an address that names no task begins at the first."""
        return max(0, _number(self.first) - 1)


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


async def order_grid(backends: Backends, order_id: str, index: int, now: datetime) -> GridView:
    """The page of an order that begins at the task of an index."""
    request = rollouts_pb2.GetRolloutsRequest(order_id=order_id)
    order = (await backends.scheduler.rollouts.GetRollouts(request)).order
    parts = await _parts(backends, order, order.runs, index)
    return grid_view(f"/rollouts/{order.order_id}", order, parts, _within(index, order), now)


async def run_grid(backends: Backends, run_id: str, index: int, now: datetime) -> GridView:
    """The same for one run of an order."""
    run, order = await _run_and_order(backends.scheduler, run_id)
    parts = await _parts(backends, order, [run], index)
    return grid_view(f"/runs/{run_id}/rollouts", order, parts, _within(index, order), now)


@router.get("/runs/{job_id}/rollouts/{task}/{rollout}")
async def show_rollout(  # noqa: PLR0913, PLR0917  # dependencies and the parts of the address
    page: PageOf, backends: BackendCalls, now: Now, job_id: JobId, task: str, rollout: str, step: str = ""
) -> Response:
    run, order = await _run_and_order(backends.scheduler, job_id)
    key, rollouts = RolloutPosition(_number(task), _number(rollout)), max(1, run.order.rollouts)
    if not (1 <= key.task <= len(order.task_ids) and 1 <= key.rollout <= rollouts):
        raise NoSuchRollout(run_id=job_id, task=task, rollout=rollout)
    recorded = await _recorded(backends.results, job_id, key)
    view = rollout_view(run_row(run), order, key, recorded, (rollouts, _number(step), now))
    return page.show("rollouts/rollout", view, part="rollouts/rollout_part")


async def _run_and_order(scheduler: Scheduler, run_id: str) -> tuple[run_pb2.Run, rollouts_pb2.RolloutsOrder]:
    """The order that submitted the run, else its tasks as one without an id. Raises NotOfRollouts."""
    run, order = await asyncio.gather(scheduler.run(run_id), _order_of(scheduler, run_id))
    return run, order or await _order_alone(scheduler, run)


async def _order_of(scheduler: Scheduler, run_id: str) -> rollouts_pb2.RolloutsOrder | None:
    """None for a run that was ordered by itself."""
    try:
        request = rollouts_pb2.GetRolloutsRequest(run_id=run_id)
        return (await scheduler.rollouts.GetRollouts(request)).order
    except DomainError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return None


async def _order_alone(scheduler: Scheduler, run: run_pb2.Run) -> rollouts_pb2.RolloutsOrder:
    """An order of this run only, over the tasks of an order of its suite. Raises NotOfRollouts."""
    if not run.suite_version:
        raise NotOfRollouts(run_id=run.run_id)
    name = f"{run.order.suite}@{run.suite_version}"
    request = rollouts_pb2.ListRolloutsRequest(name=name, page_size=1)
    orders = (await scheduler.rollouts.ListRollouts(request)).orders
    if not orders:
        raise NotOfRollouts(run_id=run.run_id)
    alone = rollouts_pb2.RolloutsOrder()
    alone.CopyFrom(orders[0])
    alone.order_id, alone.user, alone.rollouts = "", run.user, run.order.rollouts or 1
    alone.created_at.CopyFrom(run.created_at)
    return alone


async def _parts(
    backends: Backends, order: rollouts_pb2.RolloutsOrder, runs: Sequence[run_pb2.Run], first: int
) -> Sequence[RunPart]:
    first = _within(first, order)
    tasks = range(first, first + tasks_per_page(order, len(runs)))

    async def part(run: run_pb2.Run) -> RunPart:
        summary, outcomes = await asyncio.gather(
            backends.results.summary(run.run_id), _outcomes(backends.results, run.run_id, tasks)
        )
        return RunPart(run, summary, outcomes)

    return await asyncio.gather(*(part(run) for run in runs))


async def _outcomes(results: Results, run_id: str, tasks: range) -> Sequence[outcome_pb2.RecordedOutcome]:
    """Outcomes without their texts. The samples of the run are the tasks in their order."""
    found: list[outcome_pb2.RecordedOutcome] = []
    request = results_pb2.ListOutcomesRequest(
        run_id=run_id, page_size=_OUTCOMES_AT_A_TIME, first_sample=tasks.start, is_brief=True
    )
    while True:
        listed = await results.recorded_outcomes(request)
        found += [one for one in listed.outcomes if one.doc_id in tasks]
        request.page_token = listed.next_page_token
        if not request.page_token or len(found) < len(listed.outcomes) or not listed.outcomes:
            return found


async def _recorded(
    results: Results, run_id: str, key: RolloutPosition
) -> outcome_pb2.RecordedOutcome | None:
    """None before it is recorded."""
    request = results_pb2.ListOutcomesRequest(
        run_id=run_id, page_size=1, first_sample=key.task - 1, first_rollout=key.rollout - 1
    )
    for one in (await results.recorded_outcomes(request)).outcomes:
        if (one.outcome.sample, one.outcome.rollout) == (key.task - 1, key.rollout - 1):
            return one
    return None


def _known_name(name: str) -> str:
    """The name, without a version that is none: it is still being typed, or an old link has it."""
    suite, _, version = name.partition("@")
    return name if version.isascii() and version.isdigit() and len(version) < 9 else suite  # as the scheduler


def _within(first: int, order: rollouts_pb2.RolloutsOrder) -> int:
    """The index of a task that there is."""
    return min(first, max(0, len(order.task_ids) - 1))


def _number(text: str) -> int:
    """0 for what is no number."""
    return min(int(text), INT32_MAX) if text.isascii() and text.isdigit() and len(text) < 12 else 0
