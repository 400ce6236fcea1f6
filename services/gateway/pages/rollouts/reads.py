"""Pages of rollouts, read from the scheduler and results: for a response, and for each push."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query

from proctor.v1 import outcome_pb2, rollout_service_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.plain import INT32_MAX
from proctor.wire.rollout_orders import row_rollouts
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import Backends, Results, Scheduler
from services.gateway.http.errors import RolloutNotFound, RolloutsOfRunNotFound
from services.gateway.http.parameters import JobId
from services.gateway.pages.filtered_lists import Listed, ListFilters, ListView, read_list
from services.gateway.pages.rollouts.grid_view import GridView, RunPart, grid_view, tasks_per_page
from services.gateway.pages.rollouts.order_row import OrderRow, order_row
from services.gateway.pages.rollouts.rollout_view import PageStart, RolloutPosition, RolloutView, rollout_view
from services.gateway.pages.rows.runs import run_row

_PAGE_SIZE = 30
_OUTCOMES_AT_A_TIME = 1000


async def _filters(
    state: str = "",
    suite: Annotated[str, Query(max_length=128)] = "",
    model: Annotated[str, Query(max_length=512)] = "",
    after: Annotated[str, Query(max_length=512)] = "",
) -> ListFilters:
    return ListFilters(state=state, suite=suite, model=model, after=after)


OrderFilters = Annotated[ListFilters, Depends(_filters)]


@dataclass(frozen=True, slots=True)
class RolloutAddress:
    """A rollout of a run as its address has it.

    `step`, `diff` and `log`: the first step and lines that are shown.
    """

    job_id: JobId
    task: str
    rollout: str
    step: str = ""
    diff: str = ""
    log: str = ""

    @property
    def path(self) -> str:
        return f"/runs/{self.job_id}/rollouts/{self.task}/{self.rollout}"

    @property
    def start(self) -> PageStart:
        return PageStart(*map(whole_number, (self.step, self.diff, self.log)))


async def order_list(
    scheduler: Scheduler, filters: ListFilters, now: datetime, *, is_whole: bool = False
) -> ListView[OrderRow]:
    """A page of the list. Whole, it has the filters."""

    async def listed(model: str) -> Listed[OrderRow]:
        request = rollout_service_pb2.ListRolloutsOrdersRequest(
            page_size=_PAGE_SIZE,
            page_token=filters["after"],
            state=filters.state,
            suite=_known_suite(filters["suite"]),
            model=model,
        )
        found = await scheduler.rollouts.ListRolloutsOrders(request)
        rows = [order_row(order) for order in found.orders]
        return Listed(rows, [run for row in rows for run in row.runs], found.total, found.next_page_token)

    return await read_list(scheduler, "/rollouts", filters, listed, (now, is_whole))


async def order_grid(backends: Backends, order_id: str, index: int, now: datetime) -> GridView:
    """The page of an order that begins at the task of an index."""
    request = rollout_service_pb2.GetRolloutsOrderRequest(order_id=order_id)
    order = (await backends.scheduler.rollouts.GetRolloutsOrder(request)).order
    parts = await _parts(backends, order, order.runs, index)
    return grid_view(f"/rollouts/{order.order_id}", order, parts, _within(index, order), now)


async def run_grid(backends: Backends, run_id: str, index: int, now: datetime) -> GridView:
    """The same for one run of an order."""
    run, order = await _run_and_order(backends.scheduler, run_id)
    parts = await _parts(backends, order, [run], index)
    return grid_view(f"/runs/{run_id}/rollouts", order, parts, _within(index, order), now)


async def one_rollout(backends: Backends, at: RolloutAddress, now: datetime) -> RolloutView:
    """Raises RolloutNotFound."""
    run, order = await _run_and_order(backends.scheduler, at.job_id)
    key = RolloutPosition(whole_number(at.task, otherwise=-1), whole_number(at.rollout, otherwise=-1))
    rollouts = row_rollouts(run.order, len(order.task_ids))
    if not (0 <= key.task < len(rollouts) and 0 <= key.rollout < rollouts[key.task]):
        raise RolloutNotFound(run_id=at.job_id, task=at.task, rollout=at.rollout)
    recorded = await _recorded(backends.results, at.job_id, key)
    return rollout_view(run_row(run), order, key, recorded, (rollouts, at.start, now))


async def _run_and_order(
    scheduler: Scheduler, run_id: str
) -> tuple[run_pb2.Run, rollout_service_pb2.RolloutsOrder]:
    """The order that submitted the run, else its tasks as one without an id. Raises RolloutsOfRunNotFound."""
    run, order = await asyncio.gather(scheduler.run(run_id), _order_of(scheduler, run_id))
    return run, order or await _order_alone(scheduler, run)


async def _order_of(scheduler: Scheduler, run_id: str) -> rollout_service_pb2.RolloutsOrder | None:
    """None for a run that was ordered by itself."""
    try:
        request = rollout_service_pb2.GetRolloutsOrderRequest(run_id=run_id)
        return (await scheduler.rollouts.GetRolloutsOrder(request)).order
    except DomainError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return None


async def _order_alone(scheduler: Scheduler, run: run_pb2.Run) -> rollout_service_pb2.RolloutsOrder:
    """An order of this run only, over the tasks of an order of its suite. Raises RolloutsOfRunNotFound."""
    if not run.suite_version:
        raise RolloutsOfRunNotFound(run_id=run.run_id)
    suite = f"{run.order.suite}@{run.suite_version}"
    request = rollout_service_pb2.ListRolloutsOrdersRequest(suite=suite, page_size=1)
    orders = (await scheduler.rollouts.ListRolloutsOrders(request)).orders
    if not orders:
        raise RolloutsOfRunNotFound(run_id=run.run_id)
    alone = rollout_service_pb2.RolloutsOrder()
    alone.CopyFrom(orders[0])
    alone.order_id, alone.user, alone.rollouts = "", run.user, run.order.rollouts or 1
    alone.created_at.CopyFrom(run.created_at)
    del alone.runs[:]
    alone.runs.append(run)
    return alone


async def _parts(
    backends: Backends, order: rollout_service_pb2.RolloutsOrder, runs: Sequence[run_pb2.Run], first: int
) -> Sequence[RunPart]:
    first = _within(first, order)
    tasks = range(first, first + tasks_per_page(order, len(runs)))

    async def part(run: run_pb2.Run) -> RunPart:
        summary, outcomes = await asyncio.gather(
            backends.results.summary(run.run_id), _outcomes(backends.results, run, tasks)
        )
        return RunPart(run, summary, outcomes)

    return await asyncio.gather(*(part(run) for run in runs))


async def _outcomes(
    results: Results, run: run_pb2.Run, tasks: range
) -> Mapping[tuple[int, int], outcome_pb2.RecordedOutcome]:
    """Outcomes without their texts. The samples of the run are the tasks in their order."""
    found: dict[tuple[int, int], outcome_pb2.RecordedOutcome] = {}
    wanted = sum(row_rollouts(run.order, tasks.stop)[tasks.start : tasks.stop])
    request = results_pb2.ListOutcomesRequest(
        run_id=run.run_id,
        page_size=max(1, min(wanted, _OUTCOMES_AT_A_TIME)),
        first_sample=tasks.start,
        is_brief=True,
    )
    while True:
        listed = await results.recorded_outcomes(request)
        known = {(one.doc_id, one.outcome.rollout): one for one in listed.outcomes if one.doc_id in tasks}
        found |= known
        request.page_token = listed.next_page_token
        is_beyond = len(known) < len(listed.outcomes) or not known
        if is_beyond or len(found) >= wanted or not request.page_token:
            return found


async def _recorded(
    results: Results, run_id: str, key: RolloutPosition
) -> outcome_pb2.RecordedOutcome | None:
    """None before it is recorded."""
    request = results_pb2.ListOutcomesRequest(
        run_id=run_id, page_size=1, first_sample=key.task, first_rollout=key.rollout
    )
    for one in (await results.recorded_outcomes(request)).outcomes:
        if (one.outcome.sample, one.outcome.rollout) == (key.task, key.rollout):
            return one
    return None


def _known_suite(typed: str) -> str:
    """The suite, without an invalid version: it may still be typed, or come from an old link."""
    suite, _, version = typed.partition("@")
    is_version = version.isascii() and version.isdigit() and len(version) < 9  # as the scheduler
    return typed if is_version else suite


def _within(first: int, order: rollout_service_pb2.RolloutsOrder) -> int:
    """The index of an existing task."""
    return min(first, max(0, len(order.task_ids) - 1))


def whole_number(text: str, otherwise: int = 0) -> int:
    """`otherwise` for what is not a number."""
    return min(int(text), INT32_MAX) if text.isascii() and text.isdigit() and len(text) < 12 else otherwise
