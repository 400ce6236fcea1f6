"""The only module that knows all concrete parts of the scheduler: makes them, joins them, closes them."""

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

from services.common import subjects
from services.common.clock import SystemClock
from services.common.grpc_client import open_channel
from services.common.grpc_server import GrpcServer, serve_grpc
from services.common.jetstream import JetStream, connect_nats
from services.common.lifecycle import every
from services.common.postgres import connect_pool, migrate
from services.common.process import release, return_freed_memory
from services.scheduler import grpc_api
from services.scheduler.batches import grpc_api as grpc_batch_api
from services.scheduler.batches.grpc_api import GrpcBatchApi
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.wiring import BatchParts
from services.scheduler.datasets import grpc_api as grpc_dataset_api
from services.scheduler.datasets.grpc_api import GrpcDatasetApi
from services.scheduler.datasets.load_rows import LoadRows
from services.scheduler.dispatch.credit import CreditRule
from services.scheduler.dispatch.dispatch_shards import DispatchShards
from services.scheduler.dispatch.drive_run import DriverContext, DriverTimings, RunDriver
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.dispatch.nats import NatsShardStream
from services.scheduler.dispatch.postgres import PostgresShards
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.files import grpc_api as grpc_file_api
from services.scheduler.files.grpc_api import GrpcFileApi
from services.scheduler.files.wiring import UploadParts
from services.scheduler.grpc_api import GrpcApi, SchedulerUseCases
from services.scheduler.leadership.leader_election import FencingToken, lead_when_elected
from services.scheduler.leadership.postgres import PostgresLeaderElection
from services.scheduler.planning.find_tasks import FindDatasetTasks, FindSuiteTasks
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.planning.plan_retry import AddMissingShards, PlanRetry
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.postgres_sessions import MIGRATIONS, SCHEMA, Sessions
from services.scheduler.prices.settle_price import SettlePrice
from services.scheduler.prices.yaml_prices import YamlPrices
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.rate_limits.assign_quotas import AssignQuotas
from services.scheduler.rate_limits.nats import NatsQuotas, NatsRateReports
from services.scheduler.rate_limits.rate_meter import RateLimitTracker
from services.scheduler.rate_limits.retry_budget import RetryBudget
from services.scheduler.runs.admission.postgres import PostgresQueue
from services.scheduler.runs.lifecycle.change_state import CancelRun, PauseRun, ResumeRun, RetryRun
from services.scheduler.runs.lifecycle.delete_run import DeleteRun
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.postgres_deleted_runs import PostgresDeletedRuns
from services.scheduler.runs.lifecycle.postgres_led_runs import PostgresLedRuns
from services.scheduler.runs.lifecycle.run import RunId
from services.scheduler.runs.lifecycle.submit_run import SubmitRun
from services.scheduler.runs.limits.change_limits import ChangeLimits
from services.scheduler.runs.limits.postgres import PostgresLimits
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.orders.run_order import Priority
from services.scheduler.runs.reads import grpc_api as grpc_queue_api
from services.scheduler.runs.reads.grpc_api import GrpcQueueApi, QueueUseCases
from services.scheduler.runs.reads.show_queue import ShowQueue
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites import grpc_api as grpc_suite_api
from services.scheduler.suites.grpc_api import GrpcSuiteApi
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from services.scheduler.workers.list_models import ListingRules, ListModels
from services.scheduler.workers.nats import NatsModelLists, NatsWorkerRegistry
from services.scheduler.workers.pool import Aliases, Pool
from services.scheduler.workers.yaml_pools import read_aliases, read_pools

SERVICE_NAMES = (
    grpc_api.SERVICE_NAME,
    grpc_suite_api.SERVICE_NAME,
    *grpc_queue_api.SERVICE_NAMES,
    grpc_dataset_api.SERVICE_NAME,
    grpc_file_api.SERVICE_NAME,
    grpc_batch_api.SERVICE_NAME,
)
CLOSE_SECONDS = 5.0
FORGET_SECONDS = 60.0
# A worker gives its provider up before.
LIST_MODELS_SECONDS = 10.0
# So soon a thread that checks an upload lets the event loop in; five times that is Python's own way.
THREAD_TURN_SECONDS = 0.001


@dataclass(frozen=True)
class Connections:
    """What leads out of the process."""

    postgres: asyncpg.Pool
    nats: Client
    results: grpc.aio.Channel


@dataclass(frozen=True)
class Definitions:
    """What an operator has written down: read first, since nothing works without."""

    pools: tuple[Pool, ...]
    suites: YamlInstalledSuites
    prices: YamlPrices
    aliases: Aliases


class SchedulerParts:
    """Ports with their adapters, as use cases share them."""

    def __init__(
        self, settings: SchedulerSettings, definitions: Definitions, connections: Connections
    ) -> None:
        self.clock = SystemClock()
        self.tracker = ProgressTracker()
        self.pools = definitions.pools
        self.aliases = definitions.aliases
        jetstream = JetStream(connections.nats)
        self.registry = NatsWorkerRegistry(
            jetstream.bucket(subjects.WORKERS_BUCKET), self.clock, self._on_workers_changed
        )
        self.model_lists = NatsModelLists(connections.nats, self.clock, LIST_MODELS_SECONDS)
        budget = RetryBudget(settings.max_retried_share)
        self.controls = NatsRunControls(connections.nats, jetstream.bucket(subjects.RUNS_BUCKET), budget)
        self.rate_limit_tracker = RateLimitTracker()
        self.pace_feed = NatsRateReports(connections.nats, self.rate_limit_tracker, budget, self.clock)
        self.pace_grants = NatsQuotas(jetstream.bucket(subjects.QUOTAS_BUCKET))
        self.feed = NatsProgressReports(connections.nats, self.tracker, self.clock)
        self.record = GrpcRunRecord(connections.results)
        any_model_pools = frozenset(pool.name for pool in self.pools if pool.serves_any_model)
        self.stream = NatsShardStream(jetstream, self.record, any_model_pools)
        sessions = Sessions(connections.postgres)
        self.suites = SuiteParts(settings, definitions.suites, sessions, self.clock)
        self.limits = PostgresLimits(sessions, _limits_of(settings))
        self.runs = PostgresRuns(sessions, self.limits)
        self.deleting = DeleteRun(PostgresDeletedRuns(sessions), self.record, self.clock)
        self.pricing = SettlePrice(definitions.prices, self.runs)
        self.queue = ShowQueue(PostgresQueue(sessions), self.limits, self.tracker, self.registry, self.clock)
        self.led_runs = PostgresLedRuns(sessions, self.limits)
        self.shards = PostgresShards(sessions)
        self.stored = UploadParts(settings, sessions, self.clock)
        self.batches = BatchParts(
            PostgresBatches(sessions, self.runs),
            GrpcBatchLines(connections.results),
            self.stored,
            self.limits,
            self.controls,
            self.clock,
        )

    async def forget_idle(self) -> NoReturn:
        """For ever, also where another scheduler leads: reports of all runs come here."""

        async def forget() -> None:
            self.tracker.forget_idle(self.clock.monotonic())
            self.rate_limit_tracker.forget_idle(self.clock.monotonic())
            await self.limits.forget_requests(self.clock.now())

        await every(FORGET_SECONDS, forget, name="forget idle runs")

    def _on_workers_changed(self) -> None:
        self.tracker.touch(ANY_RUN, self.clock.monotonic())


class RunningScheduler:
    """Answers calls; and leads, or waits to lead."""

    def __init__(self, grpc_server: GrpcServer, vital: asyncio.Task[NoReturn], drain_seconds: float) -> None:
        self.grpc = grpc_server
        self._vital = vital
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await asyncio.shield(self._vital)

    async def stop_taking_work(self) -> None:
        """Another replica leads from here on; a step that breaks off is done again by it."""
        self._vital.cancel()
        await asyncio.wait((self._vital,), timeout=self._drain_seconds)

    async def drain(self) -> None:
        await self.grpc.stop(self._drain_seconds)


@asynccontextmanager
async def running_scheduler(settings: SchedulerSettings) -> AsyncIterator[RunningScheduler]:
    pools = read_pools(settings.pools_file, settings.allowed_base_urls)
    definitions = Definitions(
        pools,
        YamlInstalledSuites(settings.suites_dir),
        YamlPrices(settings.prices_file),
        read_aliases(settings.pools_file, pools),
    )
    sys.setswitchinterval(THREAD_TURN_SECONDS)
    return_freed_memory()
    async with AsyncExitStack() as opened:
        await migrate(settings.postgres_dsn, SCHEMA, MIGRATIONS)
        pool = await connect_pool(settings.postgres_dsn, schema=SCHEMA, max_size=settings.scheduler_pool_size)
        opened.push_async_callback(_close_pool, pool)
        nats = await connect_nats(settings.nats_url, "scheduler")
        opened.push_async_callback(nats.close)
        channel = open_channel(settings.results_address)
        opened.push_async_callback(channel.close)
        parts = SchedulerParts(settings, definitions, Connections(pool, nats, channel))
        await parts.feed.start()
        await parts.pace_feed.start()
        use_cases = _use_cases(settings, parts)
        opened.push_async_callback(use_cases.list_models.close)
        apis = (
            GrpcApi(use_cases),
            GrpcSuiteApi(parts.suites.use_cases()),
            GrpcQueueApi(QueueUseCases(parts.queue, ChangeLimits(parts.limits), parts.limits, parts.clock)),
            GrpcDatasetApi(parts.stored.dataset_use_cases()),
            GrpcFileApi(parts.stored.file_use_cases()),
            GrpcBatchApi(parts.batches.use_cases(use_cases)),
        )
        registrations = [api.register for api in apis]
        server = await serve_grpc(settings.scheduler_address, registrations, SERVICE_NAMES)
        opened.push_async_callback(server.stop, 0)
        leadership = PostgresLeaderElection(settings.postgres_dsn, SCHEMA)
        lead = _lead(settings, parts)
        vital = asyncio.ensure_future(
            _together(parts.registry.listen(), parts.forget_idle(), lead_when_elected(leadership, lead))
        )
        opened.push_async_callback(_cancelled, vital)
        yield RunningScheduler(server, vital, settings.scheduler_drain_seconds)


def _use_cases(settings: SchedulerSettings, parts: SchedulerParts) -> SchedulerUseCases:
    return SchedulerUseCases(
        submit=SubmitRun(
            parts.runs,
            parts.suites.catalogue,
            parts.stored.datasets,
            parts.pools,
            parts.controls,
            parts.clock,
            parts.pricing,
            parts.queue,
            parts.aliases,
        ),
        cancel=CancelRun(parts.runs, parts.controls, parts.clock),
        retry=RetryRun(parts.runs, parts.controls, parts.clock),
        pause=PauseRun(parts.runs, parts.controls, parts.clock),
        resume=ResumeRun(parts.runs, parts.controls, parts.clock),
        delete=parts.deleting,
        show=ShowRun(parts.runs, parts.record, parts.tracker, parts.registry, parts.clock, parts.queue),
        suites=parts.suites.catalogue,
        list_models=ListModels(
            parts.pools,
            parts.registry,
            parts.model_lists,
            parts.clock,
            ListingRules(settings.list_models_wait_seconds),
        ),
        aliases=parts.aliases,
        registry=parts.registry,
    )


def _limits_of(settings: SchedulerSettings) -> QueueLimits:
    return QueueLimits(
        max_running=settings.max_running_runs,
        max_pending_per_user=settings.max_pending_runs_per_user,
        max_requests_per_minute=settings.max_requests_per_minute,
        run_time_limit=timedelta(seconds=settings.run_time_limit_seconds),
        min_run_time=timedelta(seconds=settings.min_run_time_seconds),
        priorities={user: Priority[name.upper()] for user, name in settings.highest_priorities.items()},
    )


def _lead(settings: SchedulerSettings, parts: SchedulerParts) -> Callable[[FencingToken], Awaitable[None]]:
    runs = _lead_runs(settings, parts)
    paces = AssignQuotas(parts.rate_limit_tracker, parts.pace_grants, parts.clock)
    batches = parts.batches.leading(settings)
    sweeps = (parts.stored.sweeping(), parts.stored.file_deletion(), parts.deleting)

    async def lead(token: FencingToken) -> None:
        sweeping = [sweep.lead() for sweep in sweeps]
        await _together(runs.lead(token), paces.lead(), batches.lead(token), *sweeping)

    return lead


def _lead_runs(settings: SchedulerSettings, parts: SchedulerParts) -> LeadRuns:
    tools = _drive_tools(settings, parts)

    def new_driver(token: FencingToken, run_id: RunId, peers: Callable[[str], int]) -> RunDriver:
        return RunDriver(tools, token, run_id, peers)

    return LeadRuns(parts.led_runs, parts.stream, parts.controls, parts.tracker, parts.clock, new_driver)


def _drive_tools(settings: SchedulerSettings, parts: SchedulerParts) -> DriverContext:
    rule = CreditRule(
        settings.dispatch_floor_shards, settings.dispatch_ceiling_shards, settings.dispatch_seconds_ahead
    )
    patience = DriverTimings(
        quiet_seconds=settings.reconcile_quiet_seconds,
        suspicious_seconds=min(settings.reconcile_quiet_seconds, 1.0),
    )
    missing_shards = AddMissingShards(parts.led_runs, parts.record)
    return DriverContext(
        runs=parts.runs,
        planner=PlanRun(
            parts.led_runs,
            parts.record,
            FindSuiteTasks(parts.suites.catalogue, parts.suites.rows),
            FindDatasetTasks(parts.stored.datasets, LoadRows(parts.stored.objects)),
            release(),
            parts.clock,
            parts.registry,
            missing_shards,
        ),
        retry_planner=PlanRetry(parts.runs, parts.led_runs, parts.record, missing_shards),
        dispatcher=DispatchShards(parts.shards, parts.stream, parts.tracker, parts.registry, rule),
        reconciler=ReconcileShards(
            parts.led_runs, parts.shards, parts.record, parts.stream, parts.tracker, parts.clock
        ),
        finisher=FinishRun(
            parts.led_runs, parts.record, parts.stream, parts.controls, parts.clock, settings.max_failed_share
        ),
        controls=parts.controls,
        registry=parts.registry,
        tracker=parts.tracker,
        clock=parts.clock,
        patience=patience,
    )


async def _together(*parts: Coroutine[None, None, None]) -> NoReturn:
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)
    raise RuntimeError("a part that should go on for ever has ended")


async def _cancelled(task: asyncio.Task[NoReturn]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _close_pool(pool: asyncpg.Pool) -> None:
    """A Postgres that is away does not answer a good-bye."""
    try:
        await asyncio.wait_for(pool.close(), CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()
