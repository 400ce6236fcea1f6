"""The list of runs, and a run: live while it goes, with its figures afterwards."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, WebSocket
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import GetDatasetRequest
from proctor.v1.rollout_service_pb2 import ListRolloutsRequest
from proctor.wire.enums import value_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import Results, ResultsCalls, Scheduler, SchedulerCalls
from services.gateway.http.parameters import JobId
from services.gateway.pages.filters import model_filter
from services.gateway.pages.live.part import push
from services.gateway.pages.page import PageOf
from services.gateway.pages.runs.figures_view import FiguresView, figures_view
from services.gateway.pages.runs.list_view import STATES, run_list_view
from services.gateway.pages.runs.live import LiveRuns, Point
from services.gateway.pages.runs.view import FINAL, LiveView, RunHead, live_view, run_head

_PAGE_SIZE = 50
_EVERY = ("1", "5", "30", "60")

router = APIRouter(prefix="/runs", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run; `ask` is the action that its page asks about."""

    head: RunHead
    live: LiveView
    figures: FiguresView | None
    points: Sequence[Point]
    every: str
    ask: str


async def _backends(
    request: Request, scheduler: SchedulerCalls, results: ResultsCalls
) -> tuple[Scheduler, Results, LiveRuns]:
    return scheduler, results, request.app.state.live_runs


RunBackends = Annotated[tuple[Scheduler, Results, LiveRuns], Depends(_backends)]


class RunFilters:
    """Filters of the list, as its address has them. Unknown ones are ignored: old links stay valid."""

    def __init__(
        self,
        state: str = "",
        suite: Annotated[str, Query(max_length=128)] = "",
        model: Annotated[str, Query(max_length=512)] = "",
        dataset: Annotated[str, Query(max_length=64)] = "",
        after: Annotated[str, Query(max_length=512)] = "",
    ) -> None:
        self.state = state if state in STATES else ""
        self.suite, self.model, self.dataset, self.after = suite, model.strip(), dataset, after

    def named(self) -> dict[str, str]:
        names = ("state", "suite", "model", "dataset", "after")
        return {name: getattr(self, name) for name in names}


@router.get("")
async def list_runs(
    page: PageOf, scheduler: SchedulerCalls, now: Now, filters: Annotated[RunFilters, Depends()]
) -> Response:
    suites, model, dataset_name = await asyncio.gather(
        scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
        model_filter(scheduler, filters.model, has_field=not page.is_part),
        _dataset_name(scheduler, filters.dataset),
    )
    request = scheduler_pb2.ListRunsRequest(
        page_size=_PAGE_SIZE,
        page_token=filters.after,
        state=value_of(run_pb2.RunState, filters.state, unset=""),
        suite=filters.suite,
        dataset_id=filters.dataset,
        model=model.name,
    )
    # A name of several models lists none of them.
    is_clear = not model.fault
    listed = await scheduler.runs.ListRuns(request) if is_clear else scheduler_pb2.ListRunsResponse()
    names = [each.suite for each in suites.suites]
    view = run_list_view(listed, filters.named(), names, now)
    view = replace(view, model=model, dataset_name=dataset_name)
    response = page.show("runs/list", view, part="runs/list_part", status=200 if is_clear else 422)
    if page.is_part and not page.is_at(view.link(after=filters.after)):
        response.headers["HX-Push-Url"] = view.link(after=filters.after)
    return response


async def _dataset_name(scheduler: Scheduler, dataset_id: str) -> str:
    """The id where the data set is deleted: its runs are kept."""
    if not dataset_id:
        return ""
    try:
        found = await scheduler.datasets.GetDataset(GetDatasetRequest(dataset_id=dataset_id))
    except DomainError as error:
        if error.kind not in {ErrorKind.NOT_FOUND, ErrorKind.INVALID}:
            raise
        return dataset_id
    return found.dataset.name


@dataclass(frozen=True, slots=True)
class RunQuery:
    """How a run is shown: renewed every so many seconds instead of pushed, and the action to confirm."""

    every: str = ""
    ask: str = ""


@router.get("/{job_id}")
async def show_run(
    page: PageOf, backends: RunBackends, now: Now, job_id: JobId, query: Annotated[RunQuery, Depends()]
) -> Response:
    scheduler, results, live_runs = backends
    run, summary, workers = await asyncio.gather(
        scheduler.run(job_id), results.summary(job_id), _workers(scheduler)
    )
    view = RunView(
        head=run_head(run, has_rollouts=await _has_rollouts(scheduler, run)),
        live=live_view(run, summary, workers, now),
        figures=figures_view(run, summary) if run.state in FINAL else None,
        points=live_runs.points(job_id),
        every=query.every if query.every in _EVERY else "",
        ask=query.ask,
    )
    return page.show("runs/run", view, part="runs/live_part")


async def _workers(scheduler: Scheduler) -> Sequence[scheduler_pb2.WorkerInfo]:
    """None while they cannot be listed: a run is shown all the same."""
    try:
        return (await scheduler.runs.ListWorkers(scheduler_pb2.ListWorkersRequest())).workers
    except DomainError:
        return ()


async def _has_rollouts(scheduler: Scheduler, run: run_pb2.Run) -> bool:
    """Whether its suite is a set of tasks that rollouts were ordered over. Only suites of users can be."""
    if not run.suite_version:
        return False
    request = ListRolloutsRequest(name=f"{run.order.suite}@{run.suite_version}", page_size=1)
    return bool((await scheduler.rollouts.ListRollouts(request)).orders)


@router.websocket("/{job_id}/socket")
async def watch(socket: WebSocket, job_id: JobId, build: str = "") -> None:
    """Sends the newest fragment of a live run until it has ended.

    `build` is the digest of the files that the page was made with.
    """
    live_runs: LiveRuns = socket.app.state.live_runs
    await push(socket, build, live_runs.watched(job_id))
