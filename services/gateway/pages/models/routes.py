"""A model: its suites, data sets and rollouts side by side, each by its latest completed run."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2
from proctor.values.run import MAX_HISTORY_DAYS
from proctor.wire.report import latest_complete
from services.gateway.api.models import model_of, models_named
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.errors import AmbiguousModel
from services.gateway.pages.models.view import ModelRun, SeveralModels, model_view
from services.gateway.pages.page import PageOf

_PAGE_SIZE = 500
# Benchmarks on the page, and runs that are read at a time.
_MAX_SHOWN = 100
_AT_A_TIME = 8

router = APIRouter(include_in_schema=False)


@router.get("/models/{model:path}")
async def show_model(
    page: PageOf,
    scheduler: SchedulerCalls,
    results: ResultsCalls,
    now: Now,
    model: Annotated[str, Path(max_length=512)],
) -> Response:
    ordered = await models_named(scheduler, model)
    try:
        named = model_of(model, ordered)
    except AmbiguousModel as error:
        several = SeveralModels(model, str(error.facts["candidates"]).split(", "))
        return page.show("models/several", several, status=300)
    request = leaderboard_service_pb2.ListHistoryRequest(
        model=named, days=MAX_HISTORY_DAYS, metric="score", page_size=_PAGE_SIZE
    )
    history = await results.leaderboard.ListHistory(request)
    limit = asyncio.Semaphore(_AT_A_TIME)

    async def closed(entry: leaderboard_pb2.LeaderboardEntry) -> ModelRun:
        async with limit:
            run, summary = await asyncio.gather(scheduler.run(entry.run_id), results.summary(entry.run_id))
        return ModelRun(entry, run, summary)

    latest = [*latest_complete(history.entries).values()][:_MAX_SHOWN]
    runs = await asyncio.gather(*(closed(entry) for entry in latest))
    view = model_view(named, runs, history.total, now)
    # A name without any run may be misspelt.
    return page.show("models/model", view, status=200 if ordered or history.entries else 404)
