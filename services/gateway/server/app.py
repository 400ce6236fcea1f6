"""The HTTP application: all APIs, health checks, and their description with a page to read it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.responses import RedirectResponse
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel

from services.common.clock import Clock
from services.gateway.api.answers import AnswerApi
from services.gateway.api.batches import BatchApi
from services.gateway.api.comparisons.routes import ComparisonApi
from services.gateway.api.dataset_runs.routes import DatasetRunApi
from services.gateway.api.datasets.routes import DatasetApi
from services.gateway.api.exports import ExportApi
from services.gateway.api.files.routes import FileApi
from services.gateway.api.leaderboard import LeaderboardApi
from services.gateway.api.models import ModelApi, OpenAIModelApi
from services.gateway.api.queue import QueueApi
from services.gateway.api.rescoring import RescoringApi
from services.gateway.api.runs.routes import BenchmarkApi
from services.gateway.api.suites.routes import SuiteApi
from services.gateway.auth import Identity, RequestLimit
from services.gateway.backends import BackendHealth, Results, Scheduler, is_ready
from services.gateway.errors.http_handlers import handle_problems
from services.gateway.errors.http_problem import openai_problems, problems
from services.gateway.http.parameters import known_parameters
from services.gateway.server.middleware import BodyLimit, LimitedBodies, RateLimit, RequestLog


class Liveness(BaseModel):
    status: str


class Readiness(BaseModel):
    status: str
    dependencies: dict[str, str]


@dataclass(frozen=True, slots=True)
class HttpParts:
    """Collaborators of the HTTP application."""

    scheduler: Scheduler
    results: Results
    health: BackendHealth
    identity: Identity
    limit: RequestLimit
    body_limit: BodyLimit
    clock: Clock


def http_app(parts: HttpParts) -> FastAPI:
    # The page's scripts are served from here: it works without internet.
    app = FastAPIOffline(
        title="Proctor",
        version="1",
        description="Examines language models.",
        redoc_url=None,
        static_url="/docs/assets",
    )
    handle_problems(app)
    for router in _routers(parts):
        app.include_router(router, dependencies=[Depends(known_parameters)], responses=problems(429))
    for router in _openai_routers(parts):
        dependencies = [Depends(parts.identity.known_key), Depends(known_parameters)]
        app.include_router(router, dependencies=dependencies, responses=openai_problems(401, 429))
    app.get("/healthz", tags=["health"], summary="The process responds")(_alive)
    app.get("/readyz", tags=["health"], summary="Scheduler and results respond")(_readiness(parts.health))
    app.get("/", include_in_schema=False)(_front)
    app.add_middleware(LimitedBodies, limit=parts.body_limit)
    app.add_middleware(RateLimit, identity=parts.identity, limit=parts.limit)
    app.add_middleware(RequestLog, clock=parts.clock)
    return app


def _routers(parts: HttpParts) -> tuple[APIRouter, ...]:
    scheduler, results, identity, clock = parts.scheduler, parts.results, parts.identity, parts.clock
    exports = ExportApi(results)
    return (
        BenchmarkApi(scheduler, results, identity, clock).router(),
        ComparisonApi(results).router(),
        LeaderboardApi(scheduler, results).router(),
        exports.router(),
        RescoringApi(results).router(),
        QueueApi(scheduler).router(),
        SuiteApi(scheduler, identity).router(),
        ModelApi(scheduler).router(),
        DatasetApi(scheduler, identity).router(),
        AnswerApi(scheduler, results, identity).router(),
        DatasetRunApi(scheduler, results, exports, identity, clock).router(),
    )


def _openai_routers(parts: HttpParts) -> tuple[APIRouter, ...]:
    return (
        FileApi(parts.scheduler, parts.identity).router(),
        BatchApi(parts.scheduler, parts.identity).router(),
        OpenAIModelApi(parts.scheduler).router(),
    )


async def _alive() -> Liveness:
    return Liveness(status="ok")


async def _front() -> RedirectResponse:
    return RedirectResponse("/docs")


def _readiness(health: BackendHealth) -> Callable[[Response], Awaitable[Readiness]]:
    async def readiness(response: Response) -> Readiness:
        dependencies = await health.check()
        ready = is_ready(dependencies)
        response.status_code = 200 if ready else 503
        return Readiness(status="ready" if ready else "not ready", dependencies=dependencies)

    return readiness
