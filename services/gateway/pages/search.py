"""The search of everything: an id or its first digits open what has it, a name or a part of one its runs."""

import asyncio
import uuid
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.dataset_service_pb2 import ListDatasetsRequest
from proctor.v1.rollout_service_pb2 import GetRolloutsOrderRequest
from services.common.errors import DomainError, ErrorKind
from services.common.requests.request_fields import MAX_PAGE_SIZE
from services.gateway.api.models import models_named
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.pages.filters import id_digits, models_with
from services.gateway.pages.page import PageOf

# The longest name of a model; nothing that can be found is longer.
_MAX_CHARACTERS = 512
# Ids that say what they are of.
_PREFIXES = {"ds_": "/datasets/", "batch_": "/batches/", "file-": "/batches/files?file="}

router = APIRouter(include_in_schema=False)


@router.get("/search")
async def search(page: PageOf, scheduler: SchedulerCalls, q: str = "") -> Response:
    wanted = q.strip()[:_MAX_CHARACTERS]
    for prefix, path in _PREFIXES.items():
        if wanted.startswith(prefix):
            return page.go(f"{path}{quote(wanted, safe='')}")
    try:
        return page.go(await _page_of(scheduler, str(uuid.UUID(wanted))))
    except ValueError:
        found = await _page_of_digits(scheduler, id_digits(wanted))
        return page.go(found or (await _page_of_name(scheduler, wanted) if wanted else "/runs"))


async def _page_of_digits(scheduler: Scheduler, digits: str) -> str:
    """The run whose id begins so, or the list of several; "" for none."""
    if not digits:
        return ""
    request = scheduler_pb2.ListRunsRequest(run_id_prefix=digits, page_size=2)
    runs = (await scheduler.runs.ListRuns(request)).runs
    return f"/runs?id={digits}" if len(runs) > 1 else f"/runs/{runs[0].run_id}" if runs else ""


async def _page_of_name(scheduler: Scheduler, wanted: str) -> str:
    """A whole name comes before a part of one. The list of runs takes a part of names.

    Of data sets the newest are searched.
    """
    suites, datasets = await asyncio.gather(
        scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest()),
        scheduler.datasets.ListDatasets(ListDatasetsRequest(page_size=MAX_PAGE_SIZE)),
    )
    if wanted in [suite.suite for suite in suites.suites]:
        return f"/runs?{urlencode({'suite': wanted})}"
    named = [each.dataset_id for each in datasets.datasets if each.name == wanted]
    if named:
        return f"/datasets/{named[0]}"
    models = models_with(wanted, await models_named(scheduler, ""))
    if not models and any(wanted.lower() in suite.suite.lower() for suite in suites.suites):
        return f"/suites?{urlencode({'q': wanted})}"
    return f"/runs?{urlencode({'model': models[0] if len(models) == 1 else wanted})}"


async def _page_of(scheduler: Scheduler, wanted: str) -> str:
    """The order of rollouts of this id, else the run."""
    try:
        await scheduler.rollouts.GetRolloutsOrder(GetRolloutsOrderRequest(order_id=wanted))
    except DomainError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return f"/runs/{wanted}"
    return f"/rollouts/{wanted}"
