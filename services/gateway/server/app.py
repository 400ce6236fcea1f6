"""What health checks are answered with.
The HTTP door put together: the benchmark API, health, the description of both and a page to read it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.responses import RedirectResponse
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel

from services.common.clock import Clock
from services.gateway.api.answers.routes import AnswerApi
from services.gateway.api.batches.routes import BatchApi
from services.gateway.api.comparisons.routes import ComparisonApi
from services.gateway.api.dataset_runs.routes import DatasetRunApi
from services.gateway.api.datasets.routes import DatasetApi
from services.gateway.api.exports.routes import ExportApi
from services.gateway.api.files.routes import FileApi
from services.gateway.api.leaderboard.routes import StandingsApi
from services.gateway.api.models.routes import ModelApi
from services.gateway.api.openai.models import OpenAIModelApi
from services.gateway.api.queue.routes import QueueApi
from services.gateway.api.rescoring.routes import RescoringApi
from services.gateway.api.runs.routes import BenchmarkApi
from services.gateway.api.suites.routes import SuiteApi
from services.gateway.auth.identity import Identity
from services.gateway.auth.rate_limit import RequestCounts
from services.gateway.backends.health import BackendHealth, is_ready
from services.gateway.backends.results import ResultsBackend
from services.gateway.backends.scheduler import (
    BatchBackend,
    DatasetBackend,
    FileBackend,
    QueueBackend,
    SchedulerBackend,
)
from services.gateway.errors.http_handlers import handle_problems
from services.gateway.errors.http_problem import problems
from services.gateway.errors.openai_errors import openai_problems
from services.gateway.http.query_parameters import known_parameters
from services.gateway.paths import FILES, SUITES, UPLOADS
from services.gateway.server.middleware import BodyBound, CanonicalLine, CountedRequests


class Liveness(BaseModel):
    status: str


class Readiness(BaseModel):
    status: str
    dependencies: dict[str, str]


@dataclass(frozen=True, slots=True)
class HttpParts:
    """What the HTTP door is made of."""

    scheduler: SchedulerBackend
    results: ResultsBackend
    queue: QueueBackend
    datasets: DatasetBackend
    files: FileBackend
    batches: BatchBackend
    request_counts: RequestCounts
    health: BackendHealth
    identity: Identity
    clock: Clock
    max_body_bytes: int
    max_suite_body_bytes: int
    max_upload_bytes: int
    max_file_bytes: int


def http_app(parts: HttpParts) -> FastAPI:
    # The page's scripts are served from here: a machine without internet can read it.
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
        doors = [Depends(parts.identity.known_key), Depends(known_parameters)]
        app.include_router(router, dependencies=doors, responses=openai_problems(401, 429))
    app.get("/healthz", tags=["health"], summary="The process answers")(_alive)
    app.get("/readyz", tags=["health"], summary="Scheduler and results answer")(_readiness(parts.health))
    app.get("/", include_in_schema=False)(_front)
    own_bounds = {
        SUITES: parts.max_suite_body_bytes,
        UPLOADS: parts.max_upload_bytes,
        FILES: parts.max_file_bytes,
    }
    app.add_middleware(BodyBound, max_bytes=parts.max_body_bytes, of_paths=own_bounds)
    app.add_middleware(CountedRequests, identity=parts.identity, counts=parts.request_counts)
    app.add_middleware(CanonicalLine, clock=parts.clock)
    return app


def _routers(parts: HttpParts) -> tuple[APIRouter, ...]:
    exports = ExportApi(parts.results)
    return (
        BenchmarkApi(parts.scheduler, parts.results, parts.identity, parts.clock).router(),
        ComparisonApi(parts.results).router(),
        StandingsApi(parts.scheduler, parts.results).router(),
        exports.router(),
        RescoringApi(parts.results).router(),
        QueueApi(parts.queue).router(),
        SuiteApi(parts.scheduler, parts.identity).router(),
        ModelApi(parts.scheduler).router(),
        DatasetApi(parts.datasets, parts.identity).router(),
        AnswerApi(parts.scheduler, parts.results, parts.identity).router(),
        DatasetRunApi(parts.scheduler, parts.results, exports, parts.identity, parts.clock).router(),
    )


def _openai_routers(parts: HttpParts) -> tuple[APIRouter, ...]:
    return (
        FileApi(parts.files, parts.identity).router(),
        BatchApi(parts.batches, parts.identity).router(),
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
