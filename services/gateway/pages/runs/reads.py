"""The list of runs, read from the scheduler with figures from results: for a response, a push, and a file."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import HTTPConnection

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import GetDatasetRequest
from proctor.v1.leaderboard_pb2 import LeaderboardEntry
from proctor.v1.leaderboard_service_pb2 import ListClosedRunsRequest
from proctor.values.comparison import MAX_COMPARED
from proctor.values.names.project import MAX_PROJECT_CHARACTERS
from proctor.values.names.run_labels import MAX_NAME_CHARACTERS, MAX_TAG_CHARACTERS
from proctor.values.run import CHANGING_STATES
from proctor.wire.enums import value_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.models import models_named
from services.gateway.backends.calls import Backends, Results, Scheduler
from services.gateway.http.project_names import known_project, number_of
from services.gateway.pages.addresses import address
from services.gateway.pages.filtered_lists import ListFilters, ListView
from services.gateway.pages.filters import (
    FilterOptions,
    ModelFilter,
    filter_options,
    id_digits,
    models_with,
    ordered_models,
)
from services.gateway.pages.runs.columns import COLUMNS, COOKIE, Column, chosen_columns, columns_text
from services.gateway.pages.runs.listed_runs import ListedRun, listed_runs

_PAGE_SIZE = 50
_KINDS = ("suite", "dataset")
_DAYS = ("1", "7", "30", "90")
_NO_OPTIONS = FilterOptions((), (), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListView(ListView[ListedRun]):
    """`completed` of the runs over all pages are completed; it is known on the first page only.

    `has_figures` is False while results cannot be asked for them.
    """

    completed: int = 0
    has_figures: bool = True
    options: FilterOptions = _NO_OPTIONS

    @property
    def columns(self) -> Sequence[Column]:
        return chosen_columns(self.get("columns"))

    @property
    def all_columns(self) -> Sequence[Column]:
        return COLUMNS

    @property
    def all_days(self) -> Sequence[tuple[str, str]]:
        return [(each, "the last day" if each == "1" else f"the last {each} days") for each in _DAYS]

    @property
    def heads(self) -> Sequence[tuple[str, str]]:
        return [(column.title, column.kind) for column in self.columns]

    @property
    def compare_link(self) -> str:
        """The runs beside each other, once all of two to six over one suite or data set are completed."""
        compared = [row.job_id for row in self.rows if row.status == "completed"]
        is_offered = (
            1 < len(compared) <= MAX_COMPARED
            and len(compared) == self.total
            and len({row.benchmark for row in self.rows}) == 1
        )
        return address("/compare", [("run", run_id) for run_id in compared]) if is_offered else ""

    @property
    def is_filtered(self) -> bool:
        return any(name not in {"after", "columns", "metric"} for name in self.filters)


@dataclass(frozen=True, slots=True)
class _Given:
    """Filters as the address has them."""

    state: str = ""
    suite: Annotated[str, Query(max_length=128)] = ""
    kind: Annotated[str, Query(max_length=16)] = ""
    model: Annotated[str, Query(max_length=512)] = ""
    name: Annotated[str, Query(max_length=MAX_NAME_CHARACTERS)] = ""
    tag: Annotated[str, Query(max_length=MAX_TAG_CHARACTERS)] = ""
    days: Annotated[str, Query(max_length=16)] = ""
    project: Annotated[str, Query(max_length=MAX_PROJECT_CHARACTERS)] = ""
    dataset: Annotated[str, Query(max_length=64)] = ""
    id: Annotated[str, Query(max_length=64)] = ""
    metric: Annotated[str, Query(max_length=64)] = ""
    columns: Annotated[str, Query(max_length=256)] = ""
    after: Annotated[str, Query(max_length=512)] = ""


def _filters(
    connection: HTTPConnection,
    given: Annotated[_Given, Depends()],
    column: Annotated[list[str] | None, Query()] = None,
) -> ListFilters:
    """`column` are the boxes of the form. A socket has all that its page has in its address."""
    is_page = connection.scope["type"] == "http"
    remembered = connection.cookies.get(COOKIE, "") if is_page else ""
    wanted = ".".join(column) if column else given.columns or remembered
    understood = {
        "id": id_digits(given.id),
        "days": given.days if given.days in _DAYS else "",
        "project": known_project(given.project),
        "kind": given.kind if given.kind in _KINDS and not given.suite else "",
        "columns": columns_text(chosen_columns(wanted)),
    }
    return ListFilters(**asdict(given) | understood)


RunFilters = Annotated[ListFilters, Depends(_filters)]


async def run_list(
    backends: Backends, filters: ListFilters, now: datetime, *, is_whole: bool = False
) -> RunListView:
    """A page of the list. Whole, it has the options of the filters."""
    scheduler = backends.scheduler
    request = await list_request(scheduler, filters)
    request.page_size = _PAGE_SIZE
    found = await scheduler.runs.ListRuns(request)
    closed = await _closed_if_known(backends.results, found.runs, filters["metric"])
    has_limit_column = any(column.key == "limit" for column in chosen_columns(filters["columns"]))
    rows = listed_runs(found.runs, closed or {}, now, has_limit_column=has_limit_column)
    view = RunListView(
        path="/runs",
        rows=rows,
        total=found.total,
        completed=found.completed,
        following=found.next_page_token,
        filters={name: value for name, value in filters.named.items() if value},
        now=now,
        changing_runs=[row.job_id for row in rows if row.status in CHANGING_STATES],
        has_figures=closed is not None,
    )
    if not is_whole:
        return view
    options, models, dataset_name = await asyncio.gather(
        filter_options(scheduler, view.filters),
        ordered_models(scheduler),
        _dataset_name(scheduler, filters["dataset"]),
    )
    return replace(view, options=options, model=ModelFilter("", models), dataset_name=dataset_name)


async def list_request(scheduler: Scheduler, filters: ListFilters) -> scheduler_pb2.ListRunsRequest:
    """Of the page of the filters. A text that no model has in its name lists nothing."""
    given = filters["model"]
    models = models_with(given, await models_named(scheduler, "")) if given else ()
    return scheduler_pb2.ListRunsRequest(
        page_token=filters["after"],
        state=filters.state,
        benchmark=filters["suite"],
        kind=value_of(run_pb2.RunKind, filters["kind"], unset=""),
        dataset_id=filters["dataset"],
        model=(models or [given])[0] if len(models) < 2 else "",
        models=models if len(models) > 1 else (),
        run_id_prefix=filters["id"],
        name=filters["name"],
        tag=filters["tag"],
        days=int(filters["days"] or 0),
        project_id=None if not filters["project"] else number_of(filters["project"]),
    )


async def closed_runs(
    results: Results, runs: Sequence[run_pb2.Run], metric: str = ""
) -> Mapping[str, LeaderboardEntry]:
    """The entries of those that are closed, by their ids."""
    if not runs:
        return {}
    request = ListClosedRunsRequest(run_ids=[run.run_id for run in runs], metric=metric)
    found = await results.leaderboard.ListClosedRuns(request)
    return {entry.run_id: entry for entry in found.entries}


async def _closed_if_known(
    results: Results, runs: Sequence[run_pb2.Run], metric: str
) -> Mapping[str, LeaderboardEntry] | None:
    """None while results is away: runs are listed without figures then."""
    try:
        return await closed_runs(results, runs, metric)
    except DomainError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise
        return None


async def ordered_tasks(scheduler: Scheduler, run: run_pb2.Run) -> Sequence[str]:
    """The names of the tasks that a run will have, before it is planned; none where they are unknown."""
    if run.progress.tasks or run.order.dataset_id:
        return ()
    if run.order.HasField("judge"):
        return (run.order.judge.prompt,)
    if run.order.tasks:
        return run.order.tasks
    try:
        listed = await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    except DomainError:
        # The run is still shown, without the names of its tasks.
        return ()
    key = (run.order.suite, run.suite_version)
    return [task.task for each in listed.suites if (each.suite, each.version) == key for task in each.tasks]


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
