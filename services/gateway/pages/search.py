"""The search of everything: the id of a run opens it, the name of a suite or a model lists its runs."""

import uuid
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.backends import SchedulerCalls
from services.gateway.pages.page import PageOf

# The longest name of a model; nothing that can be found is longer.
_LONGEST = 512

router = APIRouter(include_in_schema=False)


@router.get("/search")
async def search(page: PageOf, scheduler: SchedulerCalls, q: str = "") -> Response:
    wanted = q.strip()[:_LONGEST]
    try:
        return page.go(f"/runs/{uuid.UUID(wanted)}")
    except ValueError:
        suites = await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    is_suite = wanted in [suite.suite for suite in suites.suites]
    return page.go(f"/runs?{urlencode({'suite' if is_suite else 'model': wanted})}" if wanted else "/runs")
