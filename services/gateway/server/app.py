"""The HTTP application: pages, APIs, health checks, and the description of the APIs, as a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from services.common.clock import Clock
from services.gateway.api import (
    answers,
    artifacts,
    audit,
    batches,
    changes,
    exports,
    leaderboard,
    models,
    queue,
    rescoring,
    rollout_tasks,
    rollouts,
    schedules,
    users,
)
from services.gateway.api.access import keys, notices, projects
from services.gateway.api.comparisons import gates, noise, ratings, sizes
from services.gateway.api.comparisons import routes as comparisons
from services.gateway.api.dataset_runs import routes as dataset_runs
from services.gateway.api.datasets import mappings
from services.gateway.api.datasets import routes as datasets
from services.gateway.api.files import routes as files
from services.gateway.api.judging import annotations, panels, verdicts
from services.gateway.api.judging import routes as judging
from services.gateway.api.runs import contamination, imports
from services.gateway.api.runs import labels as run_labels
from services.gateway.api.runs import routes as runs
from services.gateway.api.suites import routes as suites
from services.gateway.auth.admission import Admission
from services.gateway.backends.calls import Results, Scheduler
from services.gateway.backends.health import BackendHealth, is_ready
from services.gateway.http.error_handlers import handle_problems
from services.gateway.http.parameters import known_parameters
from services.gateway.http.problem import openai_problems, problems
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.html import Html
from services.gateway.pages.live.views import LiveViews
from services.gateway.pages.problems import PageResponses
from services.gateway.pages.routes import ROUTERS as PAGE_ROUTERS
from services.gateway.pages.runs.live import LiveRuns
from services.gateway.server.bounded_requests import BoundedRequests
from services.gateway.server.description import HeadRequests, describe_errors
from services.gateway.server.middleware import (
    AdmittedRequests,
    BodyLimit,
    ClientAddresses,
    LimitedBodies,
    PrivateAnswers,
    RequestLog,
)
from services.gateway.server.renewed_sign_in import RenewedSignIn
from services.gateway.server.trusted_sources import TrustedNames, TrustedSources

_ROUTERS = (
    runs.router,
    run_labels.router,
    rollouts.router,
    rollout_tasks.router,
    artifacts.router,
    comparisons.router,
    gates.router,
    contamination.router,
    sizes.router,
    noise.router,
    leaderboard.router,
    ratings.router,
    exports.router,
    judging.router,
    annotations.router,
    panels.router,
    verdicts.router,
    imports.router,
    rescoring.router,
    queue.router,
    users.router,
    changes.router,
    audit.router,
    keys.router,
    projects.router,
    schedules.router,
    notices.router,
    suites.router,
    models.router,
    mappings.router,
    datasets.router,
    # Before the runs, whose ids match any word.
    answers.router,
    dataset_runs.router,
)
_OPENAI_ROUTERS = (files.router, batches.router, models.openai_router)


class Liveness(BaseModel):
    status: str


class Readiness(BaseModel):
    status: str
    dependencies: dict[str, str]


@dataclass(frozen=True, slots=True)
class PageParts:
    """Collaborators of the pages alone."""

    assets: Assets
    html: Html
    live_runs: LiveRuns
    live_views: LiveViews


@dataclass(frozen=True, slots=True)
class HttpParts:
    """Collaborators of the HTTP application."""

    scheduler: Scheduler
    results: Results
    health: BackendHealth
    admission: Admission
    body_limit: BodyLimit
    sockets: Admission
    public_forms: Admission
    pages: PageParts
    trusted: TrustedNames
    clock: Clock


def http_app(parts: HttpParts) -> ASGIApp:
    # Outside of what answers the errors of all others.
    return PageResponses(routed_app(parts), html=parts.pages.html)


def routed_app(parts: HttpParts) -> FastAPI:
    # The page's scripts are served from here: it works without internet.
    app: FastAPI = FastAPIOffline(
        title="Proctor",
        version="1",
        description="Evaluates language models.",
        redoc_url=None,
        # A redirect would repeat whatever Host the request has.
        redirect_slashes=False,
        static_url="/docs/assets",
    )
    # Dependencies of the handlers.
    app.state.scheduler, app.state.results, app.state.clock = parts.scheduler, parts.results, parts.clock
    pages = parts.pages
    app.state.identity, app.state.admission = parts.admission.identity, parts.admission
    app.state.health = parts.health
    app.state.assets, app.state.html = pages.assets, pages.html
    app.state.live_runs, app.state.live_views = pages.live_runs, pages.live_views
    handle_problems(app)
    describe_errors(app)
    app.router.routes.extend(served_routes())
    # The last added is outermost: the log sees all, and a foreign page is refused before it is counted.
    app.add_middleware(HeadRequests)
    app.add_middleware(LimitedBodies, limit=parts.body_limit)
    admissions = {"http": parts.admission, "websocket": parts.sockets, "public": parts.public_forms}
    app.add_middleware(AdmittedRequests, admissions=admissions, limit=parts.body_limit)
    app.add_middleware(RenewedSignIn, admission=parts.admission)
    app.add_middleware(TrustedSources, trusted=parts.trusted)
    app.add_middleware(BoundedRequests)
    app.add_middleware(PrivateAnswers)
    app.add_middleware(RequestLog, clock=parts.clock)
    app.add_middleware(ClientAddresses, proxies=parts.admission.proxies)
    return app


@cache
def served_routes() -> Sequence[BaseRoute]:
    """FastAPI reads the types of all handlers, which takes a quarter of a second: once in a process."""
    known = [Depends(known_parameters)]
    served = APIRouter()
    for router in _ROUTERS:
        served.include_router(router, dependencies=known, responses=problems(401, 403, 429))
    for router in _OPENAI_ROUTERS:
        served.include_router(router, dependencies=known, responses=openai_problems(401, 403, 429))
    served.get("/healthz", tags=["health"], summary="The process responds")(_alive)
    not_ready: dict[int | str, dict[str, Any]] = {
        503: {"model": Readiness, "description": "A backend is away, or NATS takes no messages"}
    }
    served.get(
        "/readyz", tags=["health"], summary="Scheduler, results and NATS do their work", responses=not_ready
    )(_readiness)
    for router in PAGE_ROUTERS:
        served.include_router(router)
    return served.routes


async def _alive() -> Liveness:
    return Liveness(status="ok")


async def _readiness(request: Request, response: Response) -> Readiness:
    health: BackendHealth = request.app.state.health
    dependencies = await health.check_all()
    ready = is_ready(dependencies)
    response.status_code = 200 if ready else 503
    return Readiness(status="ready" if ready else "not ready", dependencies=dependencies)
