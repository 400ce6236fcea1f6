"""The list of runs, read from the scheduler: for a response, and for each push."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import GetDatasetRequest
from proctor.values.names.run_labels import MAX_NAME_CHARACTERS, MAX_TAG_CHARACTERS
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import Scheduler
from services.gateway.pages.filtered_lists import Listed, ListFilters, ListView, read_list
from services.gateway.pages.filters import id_digits
from services.gateway.pages.rows.runs import RunRow, run_row

_PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class _Given:
    """Filters as the address has them."""

    state: str = ""
    suite: Annotated[str, Query(max_length=128)] = ""
    model: Annotated[str, Query(max_length=512)] = ""
    name: Annotated[str, Query(max_length=MAX_NAME_CHARACTERS)] = ""
    tag: Annotated[str, Query(max_length=MAX_TAG_CHARACTERS)] = ""
    dataset: Annotated[str, Query(max_length=64)] = ""
    id: Annotated[str, Query(max_length=64)] = ""
    after: Annotated[str, Query(max_length=512)] = ""


def _filters(given: Annotated[_Given, Depends()]) -> ListFilters:
    return ListFilters(**asdict(given) | {"id": id_digits(given.id)})


RunFilters = Annotated[ListFilters, Depends(_filters)]


async def run_list(
    scheduler: Scheduler, filters: ListFilters, now: datetime, *, is_whole: bool = False
) -> ListView[RunRow]:
    """A page of the list. Whole, it has the filters."""

    async def listed(model: str) -> Listed[RunRow]:
        request = scheduler_pb2.ListRunsRequest(
            page_size=_PAGE_SIZE,
            page_token=filters["after"],
            state=filters.state,
            benchmark=filters["suite"],
            dataset_id=filters["dataset"],
            model=model,
            run_id_prefix=filters["id"],
            name=filters["name"],
            tag=filters["tag"],
        )
        found = await scheduler.runs.ListRuns(request)
        rows = [run_row(run) for run in found.runs]
        return Listed(rows, rows, found.total, found.next_page_token)

    view = await read_list(scheduler, "/runs", filters, listed, (now, is_whole))
    if not is_whole:
        return view
    known, dataset_name = await asyncio.gather(
        scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
        _dataset_name(scheduler, filters["dataset"]),
    )
    return replace(view, suites=[each.suite for each in known.suites], dataset_name=dataset_name)


async def ordered_tasks(scheduler: Scheduler, run: run_pb2.Run) -> Sequence[str]:
    """The names of the tasks that a run will have, before it is planned; none where they are unknown."""
    if run.progress.tasks or run.order.dataset_id:
        return ()
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
