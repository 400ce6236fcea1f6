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
from services.scheduler import (
    grpc_api,
    grpc_batch_api,
    grpc_dataset_api,
    grpc_file_api,
    grpc_queue_api,
    grpc_suite_api,
)
from services.scheduler.batches.grpc_batch_lines import GrpcBatchLines
from services.scheduler.batches.postgres_batches import PostgresBatches
from services.scheduler.batches.wiring import BatchParts
from services.scheduler.datasets.load_rows import LoadRows
from services.scheduler.files.wiring import UploadParts
from services.scheduler.grpc_api import GrpcApi, SchedulerUseCases
from services.scheduler.grpc_batch_api import GrpcBatchApi
from services.scheduler.grpc_dataset_api import GrpcDatasetApi
from services.scheduler.grpc_file_api import GrpcFileApi
from services.scheduler.grpc_queue_api import GrpcQueueApi, QueueUseCases
from services.scheduler.grpc_suite_api import GrpcSuiteApi
from services.scheduler.paces.lead_paces import LeadPaces
from services.scheduler.paces.nats_pace_feed import NatsPaceFeed
from services.scheduler.paces.nats_pace_grants import NatsPaceGrants
from services.scheduler.paces.pace_board import PaceBoard
from services.scheduler.paces.retry_budget import RetryBudget
from services.scheduler.pools.list_models import ListingRules, ListModels
from services.scheduler.pools.model_names import Aliases
from services.scheduler.pools.nats_crew import NatsCrew
from services.scheduler.pools.nats_model_lists import NatsModelLists
from services.scheduler.pools.pool import Pool
from services.scheduler.pools.yaml_pools import read_aliases, read_pools
from services.scheduler.ports import Fence
from services.scheduler.postgres_sessions import MIGRATIONS, SCHEMA, Sessions
from services.scheduler.prices.settle_price import SettlePrice
from services.scheduler.prices.yaml_prices import YamlPrices
from services.scheduler.runs.campaign import campaign
from services.scheduler.runs.cancel_run import CancelRun
from services.scheduler.runs.change_limits import ChangeLimits
from services.scheduler.runs.delete_run import DeleteRun
from services.scheduler.runs.drive_run import DriveRun, DriveTools, Patience
from services.scheduler.runs.finish_run import FinishRun
from services.scheduler.runs.lead_runs import LeadRuns
from services.scheduler.runs.nats_run_controls import NatsRunControls
from services.scheduler.runs.pause_run import PauseRun
from services.scheduler.runs.postgres_deleted_runs import PostgresDeletedRuns
from services.scheduler.runs.postgres_leadership import PostgresLeadership
from services.scheduler.runs.postgres_led_runs import PostgresLedRuns
from services.scheduler.runs.postgres_limits import PostgresLimits
from services.scheduler.runs.postgres_queue import PostgresQueue
from services.scheduler.runs.postgres_runs import PostgresRuns
from services.scheduler.runs.queue_limits import QueueLimits
from services.scheduler.runs.resume_run import ResumeRun
from services.scheduler.runs.retry_run import RetryRun
from services.scheduler.runs.run import RunId
from services.scheduler.runs.run_order import Priority
from services.scheduler.runs.show_queue import ShowQueue
from services.scheduler.runs.show_run import ShowRun
from services.scheduler.runs.submit_run import SubmitRun
from services.scheduler.settings import SchedulerSettings
from services.scheduler.shards.add_missing_shards import AddMissingShards
from services.scheduler.shards.credit import CreditRule
from services.scheduler.shards.dispatch_shards import DispatchShards
from services.scheduler.shards.find_dataset_tasks import FindDatasetTasks
from services.scheduler.shards.find_suite_tasks import FindSuiteTasks
from services.scheduler.shards.grpc_run_record import GrpcRunRecord
from services.scheduler.shards.nats_progress_feed import NatsProgressFeed
from services.scheduler.shards.nats_shard_wire import NatsShardWire
from services.scheduler.shards.plan_retry import PlanRetry
from services.scheduler.shards.plan_run import PlanRun
from services.scheduler.shards.postgres_shards import PostgresShards
from services.scheduler.shards.progress_board import ANY_RUN, ProgressBoard
from services.scheduler.shards.reconcile_shards import ReconcileShards
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites

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
        self.board = ProgressBoard()
        self.pools = definitions.pools
        self.aliases = definitions.aliases
        jetstream = JetStream(connections.nats)
        self.crew = NatsCrew(jetstream.bucket(subjects.WORKERS_BUCKET), self.clock, self._notice_crew)
        self.model_lists = NatsModelLists(connections.nats, self.clock, LIST_MODELS_SECONDS)
        budget = RetryBudget(settings.max_retried_share)
        self.controls = NatsRunControls(connections.nats, jetstream.bucket(subjects.RUNS_BUCKET), budget)
        self.pace_board = PaceBoard()
        self.pace_feed = NatsPaceFeed(connections.nats, self.pace_board, budget, self.clock)
        self.pace_grants = NatsPaceGrants(jetstream.bucket(subjects.QUOTAS_BUCKET))
        self.feed = NatsProgressFeed(connections.nats, self.board, self.clock)
        self.record = GrpcRunRecord(connections.results)
        any_model_pools = frozenset(pool.name for pool in self.pools if pool.serves_any_model)
        self.wire = NatsShardWire(jetstream, self.record, any_model_pools)
        sessions = Sessions(connections.postgres)
        self.suites = SuiteParts(settings, definitions.suites, sessions, self.clock)
        self.limits = PostgresLimits(sessions, _limits_of(settings))
        self.runs = PostgresRuns(sessions, self.limits)
        self.deleting = DeleteRun(PostgresDeletedRuns(sessions), self.record, self.clock)
        self.pricing = SettlePrice(definitions.prices, self.runs)
        self.queue = ShowQueue(PostgresQueue(sessions), self.limits, self.board, self.crew, self.clock)
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
            self.board.forget_idle(self.clock.monotonic())
            self.pace_board.forget_idle(self.clock.monotonic())
            await self.limits.forget_requests(self.clock.now())

        await every(FORGET_SECONDS, forget, name="forget idle runs")

    def _notice_crew(self) -> None:
        self.board.touch(ANY_RUN, self.clock.monotonic())


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
        leadership = PostgresLeadership(settings.postgres_dsn, SCHEMA)
        lead = _lead(settings, parts)
        vital = asyncio.ensure_future(
            _together(parts.crew.listen(), parts.forget_idle(), campaign(leadership, lead))
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
        show=ShowRun(parts.runs, parts.record, parts.board, parts.crew, parts.clock, parts.queue),
        suites=parts.suites.catalogue,
        list_models=ListModels(
            parts.pools,
            parts.crew,
            parts.model_lists,
            parts.clock,
            ListingRules(settings.list_models_wait_seconds),
        ),
        aliases=parts.aliases,
        crew=parts.crew,
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


def _lead(settings: SchedulerSettings, parts: SchedulerParts) -> Callable[[Fence], Awaitable[None]]:
    runs = _lead_runs(settings, parts)
    paces = LeadPaces(parts.pace_board, parts.pace_grants, parts.clock)
    batches = parts.batches.leading(settings)
    sweeps = (parts.stored.sweeping(), parts.stored.file_deletion(), parts.deleting)

    async def lead(fence: Fence) -> None:
        sweeping = [sweep.lead() for sweep in sweeps]
        await _together(runs.lead(fence), paces.lead(), batches.lead(fence), *sweeping)

    return lead


def _lead_runs(settings: SchedulerSettings, parts: SchedulerParts) -> LeadRuns:
    tools = _drive_tools(settings, parts)

    def new_driver(fence: Fence, run_id: RunId, peers: Callable[[str], int]) -> DriveRun:
        return DriveRun(tools, fence, run_id, peers)

    return LeadRuns(parts.led_runs, parts.wire, parts.controls, parts.board, parts.clock, new_driver)


def _drive_tools(settings: SchedulerSettings, parts: SchedulerParts) -> DriveTools:
    rule = CreditRule(
        settings.dispatch_floor_shards, settings.dispatch_ceiling_shards, settings.dispatch_seconds_ahead
    )
    patience = Patience(
        quiet_seconds=settings.reconcile_quiet_seconds,
        suspicious_seconds=min(settings.reconcile_quiet_seconds, 1.0),
    )
    missing_shards = AddMissingShards(parts.led_runs, parts.record)
    return DriveTools(
        runs=parts.runs,
        planner=PlanRun(
            parts.led_runs,
            parts.record,
            FindSuiteTasks(parts.suites.catalogue, parts.suites.rows),
            FindDatasetTasks(parts.stored.datasets, LoadRows(parts.stored.objects)),
            release(),
            parts.clock,
            parts.crew,
            missing_shards,
        ),
        retry_planner=PlanRetry(parts.runs, parts.led_runs, parts.record, missing_shards),
        dispatcher=DispatchShards(parts.shards, parts.wire, parts.board, parts.crew, rule),
        reconciler=ReconcileShards(
            parts.led_runs, parts.shards, parts.record, parts.wire, parts.board, parts.clock
        ),
        finisher=FinishRun(
            parts.led_runs, parts.record, parts.wire, parts.controls, parts.clock, settings.max_failed_share
        ),
        controls=parts.controls,
        crew=parts.crew,
        board=parts.board,
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
