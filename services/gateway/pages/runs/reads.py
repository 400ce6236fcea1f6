"""The list of runs, read from the scheduler: for a response, and for each push."""

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import Query

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import GetDatasetRequest
from proctor.values.run import LIVE_STATES
from proctor.wire.enums import value_of, words_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import Scheduler
from services.gateway.pages.filters import ListView, given_filters, model_filter
from services.gateway.pages.runs_table import RunRow, run_row

_PAGE_SIZE = 50
_STATES = words_of(run_pb2.RunState)


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
        self.state = state if state in _STATES else ""
        self.suite, self.model, self.dataset, self.after = suite, model.strip(), dataset, after

    def named(self) -> dict[str, str]:
        names = ("state", "suite", "model", "dataset", "after")
        return {name: getattr(self, name) for name in names}


async def run_list(
    scheduler: Scheduler, filters: RunFilters, now: datetime, *, is_whole: bool = False
) -> ListView[RunRow]:
    """A page of the list; empty where the name is that of several models. Whole, it has the filters."""
    model = await model_filter(scheduler, filters.model, has_field=is_whole)
    request = scheduler_pb2.ListRunsRequest(
        page_size=_PAGE_SIZE,
        page_token=filters.after,
        state=value_of(run_pb2.RunState, filters.state, unset=""),
        suite=filters.suite,
        dataset_id=filters.dataset,
        model=model.name,
    )
    listed, suites, dataset_name = scheduler_pb2.ListRunsResponse(), list[str](), ""
    if not model.fault:
        listed = await scheduler.runs.ListRuns(request)
    if is_whole:
        known, dataset_name = await asyncio.gather(
            scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
            _dataset_name(scheduler, filters.dataset),
        )
        suites = [each.suite for each in known.suites]
    rows = [run_row(run) for run in listed.runs]
    return ListView(
        path="/runs",
        rows=rows,
        total=listed.total,
        following=listed.next_page_token,
        filters=given_filters(filters.named()),
        now=now,
        live_runs=[row.run_id for row in rows if row.state in LIVE_STATES],
        suites=suites,
        model=model,
        dataset_name=dataset_name,
    )


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
