"""The list of runs, and a run: live while it goes, with its figures afterwards."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, WebSocket
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.rollout_service_pb2 import ListRolloutsOrdersRequest
from proctor.values.run import FINAL_NUMBERS
from services.common.errors import DomainError
from services.gateway.api.runs.job import choice_scoring
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import (
    BackendCalls,
    Backends,
    Results,
    ResultsCalls,
    Scheduler,
    SchedulerCalls,
)
from services.gateway.http.parameters import JobId
from services.gateway.pages.filtered_lists import push_list, show_list
from services.gateway.pages.live.part import push
from services.gateway.pages.page import PageOf
from services.gateway.pages.runs.columns import COOKIE
from services.gateway.pages.runs.figures_view import FiguresView, figures_view
from services.gateway.pages.runs.judge_form import JudgeForm, judge_asked
from services.gateway.pages.runs.judged_by import (
    JudgedByRow,
    PanelView,
    judged_by_rows,
    panels_of,
    refused_judges,
)
from services.gateway.pages.runs.labels import LabelsView, labels_view
from services.gateway.pages.runs.live import LiveRuns, Point
from services.gateway.pages.runs.reads import RunFilters, ordered_tasks, run_list
from services.gateway.pages.runs.repeat import RepeatedOrder, repeated_order
from services.gateway.pages.runs.view import LiveView, live_view, retried

_EVERY = ("1", "5", "30", "60")
_YEAR = 365 * 24 * 3600

router = APIRouter(prefix="/runs", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run; `has_rollouts`: agents work on its tasks; `ask` is the action that its page asks about.

    `scored_by` is the way in which choices were scored, where the order left it open. `judge` is set where
    the run judges another; `judged_by` are the newest of the `judges` that judge this one.
    """

    live: LiveView
    labels: LabelsView
    order: RepeatedOrder
    retried: str
    scored_by: str
    has_rollouts: bool
    figures: FiguresView | None
    points: Sequence[Point]
    every: str
    ask: str
    judge: run_pb2.Judge | None
    judge_form: JudgeForm
    judged_by: Sequence[JudgedByRow]
    judges: int
    refused_judges: str
    panels: Sequence[PanelView]


async def _backends(
    request: Request, scheduler: SchedulerCalls, results: ResultsCalls
) -> tuple[Scheduler, Results, LiveRuns]:
    return scheduler, results, request.app.state.live_runs


RunBackends = Annotated[tuple[Scheduler, Results, LiveRuns], Depends(_backends)]


@router.get("")
async def list_runs(
    request: Request, page: PageOf, backends: BackendCalls, now: Now, filters: RunFilters
) -> Response:
    view = await run_list(backends, filters, now, is_whole=not page.is_part)
    response = show_list(page, "runs/list", view)
    if "column" in request.query_params:
        # Chosen with the boxes of the form: later visits show the same.
        response.set_cookie(
            COOKIE, filters["columns"], max_age=_YEAR, path="/runs", httponly=True, samesite="strict"
        )
    return response


@router.websocket("/socket")
async def watch_list(socket: WebSocket, filters: RunFilters, build: str = "") -> None:
    """Pushes the list; as of every socket, `build` is the digest of the files that its page was made with."""
    state = socket.app.state
    read = partial(run_list, Backends(state.scheduler, state.results))
    await push_list(socket, build, "runs/list", filters, read)


@dataclass(frozen=True, slots=True)
class RunQuery:
    """How a run is shown: renewed every so many seconds instead of pushed, and the action to confirm."""

    every: str = ""
    ask: str = ""


@router.get("/{job_id}")
async def show_run(  # noqa: PLR0917  # what the page is made of
    page: PageOf,
    backends: RunBackends,
    now: Now,
    job_id: JobId,
    query: Annotated[RunQuery, Depends()],
    judge_form: Annotated[JudgeForm, Depends(judge_asked)],
) -> Response:
    scheduler, results, live_runs = backends
    run, summary, workers = await asyncio.gather(
        scheduler.run(job_id), results.summary(job_id), _workers(scheduler)
    )
    # Only a run that has ended can be judged.
    judged_by, judges = (
        await judged_by_rows(scheduler, results, job_id) if run.state in FINAL_NUMBERS else ((), 0)
    )
    view = RunView(
        live=live_view(run, summary, workers, now, await ordered_tasks(scheduler, run)),
        labels=labels_view(run, may_change=page.caller.may_change(run.user, run.order.project_id)),
        order=repeated_order(run),
        retried=retried(run),
        scored_by="" if run.order.scoring_method else choice_scoring(run.scoring_method) or "",
        has_rollouts=await _has_rollouts(scheduler, run),
        figures=figures_view(run, summary) if run.state in FINAL_NUMBERS else None,
        points=live_runs.points(job_id),
        every=query.every if query.every in _EVERY else "",
        ask=query.ask,
        judge_form=judge_form,
        judge=run.order.judge if run.order.HasField("judge") else None,
        judged_by=judged_by,
        judges=judges,
        refused_judges=refused_judges(run),
        panels=await panels_of(results, judged_by),
    )
    return page.show("runs/run", view, part="runs/live_part")


async def _workers(scheduler: Scheduler) -> Sequence[scheduler_pb2.WorkerInfo]:
    """The live workers. Empty while they cannot be listed, so that the run is still shown."""
    try:
        return (await scheduler.runs.ListWorkers(scheduler_pb2.ListWorkersRequest())).workers
    except DomainError:
        return ()


async def _has_rollouts(scheduler: Scheduler, run: run_pb2.Run) -> bool:
    """Whether its suite is a set of tasks that rollouts were ordered over. Only suites of users can be."""
    if not run.suite_version:
        return False
    request = ListRolloutsOrdersRequest(suite=f"{run.order.suite}@{run.suite_version}", page_size=1)
    return bool((await scheduler.rollouts.ListRolloutsOrders(request)).orders)


@router.websocket("/{job_id}/socket")
async def watch(socket: WebSocket, job_id: JobId, build: str = "") -> None:
    """Sends the newest fragment of a run until it is finished."""
    live_runs: LiveRuns = socket.app.state.live_runs
    await push(socket, build, live_runs.watched(job_id))
