"""The search of everything: an id opens what has it, a name lists the runs of a suite or a model."""

import asyncio
import uuid
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import ListDatasetsRequest
from proctor.v1.rollout_service_pb2 import GetRolloutsRequest
from services.common.errors import DomainError, ErrorKind
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.pages.page import PageOf

# The longest name of a model; nothing that can be found is longer.
_MAX_LETTERS = 512
# Ids that say what they are of.
_PREFIXES = {"ds_": "/datasets/", "batch_": "/batches/", "file-": "/batches/files?file="}
# The newest data sets, whose names are searched.
_MAX_DATASETS = 500

router = APIRouter(include_in_schema=False)


@router.get("/search")
async def search(page: PageOf, scheduler: SchedulerCalls, q: str = "") -> Response:
    wanted = q.strip()[:_MAX_LETTERS]
    for prefix, path in _PREFIXES.items():
        if wanted.startswith(prefix):
            return page.go(f"{path}{quote(wanted, safe='')}")
    try:
        return page.go(await _page_of(scheduler, str(uuid.UUID(wanted))))
    except ValueError:
        return page.go(await _page_of_name(scheduler, wanted) if wanted else "/runs")


async def _page_of_name(scheduler: Scheduler, wanted: str) -> str:
    """A name that nothing else has is that of a model."""
    suites, datasets = await asyncio.gather(
        scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
        scheduler.datasets.ListDatasets(ListDatasetsRequest(page_size=_MAX_DATASETS)),
    )
    if wanted in [suite.suite for suite in suites.suites]:
        return f"/runs?{urlencode({'suite': wanted})}"
    named = [each.dataset_id for each in datasets.datasets if each.name == wanted]
    return f"/datasets/{named[0]}" if named else f"/runs?{urlencode({'model': wanted})}"


async def _page_of(scheduler: Scheduler, wanted: str) -> str:
    """The order of rollouts of this id, else the run."""
    try:
        await scheduler.rollouts.GetRollouts(GetRolloutsRequest(order_id=wanted))
    except DomainError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return f"/runs/{wanted}"
    return f"/rollouts/{wanted}"
