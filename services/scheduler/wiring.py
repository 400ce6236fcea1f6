"""The only module that knows all concrete parts of the scheduler: it makes, joins and closes them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

import asyncpg
import grpc
from nats.aio.client import Client

from proctor.values.pools import PoolsFile
from services.common import streams
from services.common.clock import Clock, SystemClock
from services.common.grpc_client import open_channel
from services.common.grpc_server import GrpcServer, serve_grpc
from services.common.jetstream import JetStream, connect_nats
from services.common.lifecycle import every
from services.common.postgres import PostgresSession, connect_pool, migrate
from services.common.process import return_freed_memory
from services.scheduler import grpc_api
from services.scheduler.batches import grpc_api as batches_grpc_api
from services.scheduler.batches.grpc_api import GrpcBatchApi
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.wiring import BatchParts
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.dispatch.wiring import RunLeaderParts, make_run_leader
from services.scheduler.grpc_api import GrpcApi, SchedulerUseCases
from services.scheduler.leadership.leader_election import FencingToken, lead_when_elected
from services.scheduler.leadership.postgres import PostgresLeaderElection
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.pricing.prices import ResolvePrice
from services.scheduler.pricing.yaml_prices import YamlPrices
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.rate_limits.assign_quotas import AssignQuotas
from services.scheduler.rate_limits.nats import NatsQuotas, NatsRateReports
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RetryBudget
from services.scheduler.runs.admission.postgres import PostgresQueue
from services.scheduler.runs.admission.show_forecast import ForecastQueue
from services.scheduler.runs.lifecycle.change_state import CancelRun, DeleteRun, PauseRun, ResumeRun, RetryRun
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.submit_run import SubmitRun
from services.scheduler.runs.limits.change_limits import ChangeLimits
from services.scheduler.runs.limits.postgres import PostgresLimits
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.reads import grpc_api as queue_grpc_api
from services.scheduler.runs.reads.grpc_api import GrpcQueueApi, QueueUseCases
from services.scheduler.runs.reads.postgres import PostgresRunLists
from services.scheduler.runs.reads.show_run import ShowQueue, ShowRun
from services.scheduler.runs.reads.show_run_forecast import ForecastRun
from services.scheduler.session import MIGRATIONS, QUERIES, SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites import grpc_api as suites_grpc_api
from services.scheduler.suites.grpc_api import GrpcSuiteApi
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from services.scheduler.uploads import grpc_api as uploads_grpc_api
from services.scheduler.uploads.grpc_api import GrpcDatasetApi, GrpcFileApi
from services.scheduler.uploads.wiring import UploadParts
from services.scheduler.workers.base_urls import BaseUrl
from services.scheduler.workers.list_models import ListingRules, ListModels
from services.scheduler.workers.nats import NatsModelLists, NatsWorkerRegistry
from services.scheduler.workers.yaml_pools import read_allowed_base_urls, read_pools

SERVICE_NAMES = (
    grpc_api.SERVICE_NAME,
    suites_grpc_api.SERVICE_NAME,
    *queue_grpc_api.SERVICE_NAMES,
    *uploads_grpc_api.SERVICE_NAMES,
    batches_grpc_api.SERVICE_NAME,
)
CLOSE_SECONDS = 5.0
FORGET_SECONDS = 60.0
# Longer than a worker waits for its provider's list.
LIST_MODELS_SECONDS = 10.0
# How soon a thread that checks an upload lets the event loop run. Python's default is five times as long.
THREAD_SWITCH_SECONDS = 0.001


@dataclass(frozen=True)
class Definitions:
    """Files of the operator. They are read first, since nothing works without them."""

    allowed_base_urls: tuple[BaseUrl, ...]
    pools: PoolsFile
    suites: YamlInstalledSuites
    prices: YamlPrices


class Shared:
    """Adapters that several topics use."""

    def __init__(
        self,
        settings: SchedulerSettings,
        definitions: Definitions,
        *,
        postgres: asyncpg.Pool,
        nats: Client,
        results: grpc.aio.Channel,
    ) -> None:
        self.settings = settings
        self.pools, self.aliases = definitions.pools.pools, definitions.pools.aliases
        self.allowed_base_urls = definitions.allowed_base_urls
        self.clock: Clock = SystemClock()
        self.session = PostgresSession(postgres, QUERIES)
        self.nats, self.results = nats, results
        self.jetstream = JetStream(nats)
        self.tracker = ProgressTracker()
        self.registry = NatsWorkerRegistry(
            bucket=self.jetstream.bucket(streams.WORKERS_BUCKET),
            clock=self.clock,
            changed=lambda: self.tracker.touch(ANY_RUN, self.clock.monotonic()),
        )
        self.rates = RateLimitTracker()
        self.retry_budget = RetryBudget(settings.max_retried_share)
        self.controls = NatsRunControls(
            connection=nats,
            bucket=self.jetstream.bucket(streams.RUNS_BUCKET),
            budget=self.retry_budget,
        )
        self.record = GrpcRunRecord(results, max_failed_share=settings.max_failed_share)
        self.limits = PostgresLimits(self.session, _limits_of(settings))
        self.runs = PostgresRuns(self.session, self.limits)
        self.run_lists = PostgresRunLists(self.session)
        self.pricing = ResolvePrice(definitions.prices)
        self.suites = SuiteParts(settings, definitions.suites, self.session, self.clock)
        self.uploads = UploadParts(settings, self.session, self.clock)
        self.deletion = DeleteRun(runs=self.runs, record=self.record, clock=self.clock)
        self.forecasts = ForecastQueue(
            store=PostgresQueue(self.session),
            limits=self.limits,
            tracker=self.tracker,
            registry=self.registry,
            clock=self.clock,
        )

    async def subscribe(self) -> None:
        """Starts to receive reports of results and of workers, also while another scheduler leads."""
        await NatsProgressReports(connection=self.nats, tracker=self.tracker, clock=self.clock).start()
        await NatsRateReports(
            connection=self.nats, tracker=self.rates, budget=self.retry_budget, clock=self.clock
        ).start()

    async def forget_idle(self) -> NoReturn:
        async def forget() -> None:
            self.tracker.forget_idle(self.clock.monotonic())
            self.rates.forget_idle(self.clock.monotonic())
            await self.limits.forget_requests(self.clock.now())

        await every(FORGET_SECONDS, forget, name="forget idle runs")


class RunningScheduler:
    """Answers calls; leads, or waits to be elected."""

    def __init__(self, grpc_server: GrpcServer, vital: asyncio.Task[NoReturn], drain_seconds: float) -> None:
        self.grpc = grpc_server
        self._vital = vital
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await asyncio.shield(self._vital)

    async def stop_taking_work(self) -> None:
        """Ends leadership: another replica is elected and repeats what was interrupted here."""
        self._vital.cancel()
        await asyncio.wait((self._vital,), timeout=self._drain_seconds)

    async def drain(self) -> None:
        await self.grpc.stop(self._drain_seconds)


@asynccontextmanager
async def running_scheduler(settings: SchedulerSettings) -> AsyncIterator[RunningScheduler]:
    definitions = _definitions(settings)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    return_freed_memory()
    async with AsyncExitStack() as opened:
        await migrate(settings.postgres_dsn, SCHEMA, MIGRATIONS)
        pool = await connect_pool(
            settings.postgres_dsn, schema=SCHEMA, max_size=settings.postgres_connections
        )
        opened.push_async_callback(_close_pool, pool)
        nats = await connect_nats(settings.nats_url, "scheduler")
        opened.push_async_callback(nats.close)
        channel = open_channel(settings.results_address)
        opened.push_async_callback(channel.close)
        shared = Shared(settings, definitions, postgres=pool, nats=nats, results=channel)
        await shared.subscribe()
        list_models = _list_models(shared)
        opened.push_async_callback(list_models.close)
        batches = _batches(shared)
        server = await serve_grpc(
            settings.scheduler_address, _registrations(shared, list_models, batches), SERVICE_NAMES
        )
        opened.push_async_callback(server.stop, 0)
        election = PostgresLeaderElection(settings.postgres_dsn, SCHEMA)
        vital = asyncio.ensure_future(
            _together(
                shared.registry.listen(),
                shared.forget_idle(),
                lead_when_elected(election, _lead(shared, batches)),
            )
        )
        opened.push_async_callback(_cancelled, vital)
        yield RunningScheduler(server, vital, settings.drain_seconds)


def _definitions(settings: SchedulerSettings) -> Definitions:
    return Definitions(
        allowed_base_urls=read_allowed_base_urls(settings.allowed_base_urls),
        pools=read_pools(settings.pools_file),
        suites=YamlInstalledSuites(settings.suites_dir),
        prices=YamlPrices(settings.prices_file),
    )


def _limits_of(settings: SchedulerSettings) -> QueueLimits:
    return QueueLimits(
        max_running=settings.max_running_runs,
        max_pending_per_user=settings.max_pending_runs_per_user,
        max_requests_per_minute=settings.max_requests_per_minute,
        run_time_limit=timedelta(seconds=settings.run_time_limit_seconds),
        min_run_time=timedelta(seconds=settings.min_run_time_seconds),
        priorities=settings.highest_priorities,
    )


def _list_models(shared: Shared) -> ListModels:
    return ListModels(
        pools=shared.pools,
        registry=shared.registry,
        lists=NatsModelLists(connection=shared.nats, clock=shared.clock, limit_seconds=LIST_MODELS_SECONDS),
        clock=shared.clock,
        rules=ListingRules(shared.settings.list_models_wait_seconds),
    )


def _registrations(
    shared: Shared, list_models: ListModels, batches: BatchParts
) -> list[Callable[[grpc.aio.Server], None]]:
    runs = _run_use_cases(shared, list_models)
    apis = (
        GrpcApi(runs),
        GrpcSuiteApi(shared.suites.use_cases()),
        GrpcQueueApi(_queue_use_cases(shared)),
        GrpcDatasetApi(shared.uploads.dataset_use_cases()),
        GrpcFileApi(shared.uploads.file_use_cases()),
        GrpcBatchApi(batches.use_cases(submit=runs.submit, show=runs.show, cancel=runs.cancel)),
    )
    return [api.register for api in apis]


def _run_use_cases(shared: Shared, list_models: ListModels) -> SchedulerUseCases:
    runs, controls, clock = shared.runs, shared.controls, shared.clock
    return SchedulerUseCases(
        submit=SubmitRun(
            runs=runs,
            suites=shared.suites.catalogue,
            datasets=shared.uploads.datasets,
            pools=shared.pools,
            controls=controls,
            clock=clock,
            pricing=shared.pricing,
            aliases=shared.aliases,
            allowed_base_urls=shared.allowed_base_urls,
        ),
        forecast=ForecastRun(forecasts=shared.forecasts, runs=shared.run_lists),
        cancel=CancelRun(runs=runs, controls=controls, clock=clock),
        retry=RetryRun(runs=runs, controls=controls, clock=clock),
        pause=PauseRun(runs=runs, controls=controls, clock=clock),
        resume=ResumeRun(runs=runs, controls=controls, clock=clock),
        delete=shared.deletion,
        show=ShowRun(
            runs=runs,
            lists=shared.run_lists,
            record=shared.record,
            tracker=shared.tracker,
            registry=shared.registry,
            clock=clock,
            forecasts=shared.forecasts,
        ),
        suites=shared.suites.catalogue,
        list_models=list_models,
        aliases=shared.aliases,
        registry=shared.registry,
    )


def _queue_use_cases(shared: Shared) -> QueueUseCases:
    return QueueUseCases(
        show=ShowQueue(
            forecasts=shared.forecasts,
            tracker=shared.tracker,
            registry=shared.registry,
            clock=shared.clock,
        ),
        change=ChangeLimits(shared.limits),
        limits=shared.limits,
        clock=shared.clock,
    )


def _batches(shared: Shared) -> BatchParts:
    return BatchParts(
        batches=PostgresBatches(shared.session, shared.runs),
        lines=GrpcBatchLines(shared.results),
        uploads=shared.uploads,
        limits=shared.limits,
        controls=shared.controls,
        clock=shared.clock,
        finish_seconds=shared.settings.max_upload_seconds,
    )


def _lead(shared: Shared, batches: BatchParts) -> Callable[[FencingToken], Awaitable[None]]:
    """Everything that only the leader does, as long as its term lasts."""
    runs = _lead_runs(shared)
    quotas = AssignQuotas(
        tracker=shared.rates,
        store=NatsQuotas(shared.jetstream.bucket(streams.QUOTAS_BUCKET)),
        clock=shared.clock,
    )
    batch_files = batches.leader()
    cleanups = (shared.uploads.orphan_collector(), shared.uploads.file_deletion(), shared.deletion)

    async def lead(token: FencingToken) -> None:
        cleaning = [cleanup.lead() for cleanup in cleanups]
        await _together(runs.lead(token), quotas.lead(), batch_files.lead(token), *cleaning)

    return lead


def _lead_runs(shared: Shared) -> LeadRuns:
    return make_run_leader(
        RunLeaderParts(
            settings=shared.settings,
            pools=shared.pools,
            clock=shared.clock,
            session=shared.session,
            jetstream=shared.jetstream,
            tracker=shared.tracker,
            registry=shared.registry,
            controls=shared.controls,
            record=shared.record,
            limits=shared.limits,
            runs=shared.runs,
            suites=shared.suites,
            uploads=shared.uploads,
        )
    )


async def _together(*parts: Coroutine[None, None, None]) -> NoReturn:
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)
    raise RuntimeError("a part that should never end has ended")


async def _cancelled(task: asyncio.Task[NoReturn]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _close_pool(pool: asyncpg.Pool) -> None:
    """A Postgres that is down does not answer the closing of a connection."""
    try:
        await asyncio.wait_for(pool.close(), CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()
