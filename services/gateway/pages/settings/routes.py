"""Settings: what is reachable, which versions run, and the theme."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import Response

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.auth import Now, User
from services.gateway.backends import BackendHealth, SchedulerCalls
from services.gateway.http.presentation import moment
from services.gateway.pages.page import PageOf, theme_of
from services.gateway.paths import KEY_COOKIE

_PACKAGES = ("proctor", "fastapi", "uvicorn", "grpcio", "protobuf")

router = APIRouter(prefix="/settings", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Source:
    """A pool, and whether its provider lists models now. A missing key is a problem; no key is shown."""

    pool: str
    provider: str
    engine: str
    models: int
    problem: str
    listed_at: datetime | None


@dataclass(frozen=True, slots=True)
class SettingsView:
    user: str
    # With a key that the browser keeps.
    has_signed_in: bool
    theme: str
    health: Mapping[str, str]
    sources: Sequence[Source]
    aliases: Mapping[str, str]
    versions: Mapping[str, str]
    now: datetime


@router.get("")
async def show_settings(
    request: Request, page: PageOf, scheduler: SchedulerCalls, user: User, now: Now
) -> Response:
    health: BackendHealth = request.app.state.health
    listed, states = await asyncio.gather(
        scheduler.runs.ListModels(scheduler_pb2.ListModelsRequest()), health.check()
    )
    counts = {source.pool: 0 for source in listed.sources}
    for model in listed.models:
        counts[model.pool] = counts.get(model.pool, 0) + 1
    view = SettingsView(
        user=user,
        has_signed_in=KEY_COOKIE in request.cookies,
        theme=theme_of(request),
        health=states,
        sources=[
            Source(
                each.pool, each.provider, each.engine, counts[each.pool], each.problem, moment(each.listed_at)
            )
            for each in listed.sources
        ],
        aliases=dict(sorted(listed.aliases.items())),
        versions={name: version(name) for name in _PACKAGES},
        now=now,
    )
    return page.show("settings/settings", view)
