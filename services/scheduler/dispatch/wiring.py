"""Adapters that the topics of the scheduler share, and what leads the runs over them."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import NoReturn

import asyncpg
import grpc
from nats.aio.client import Client

from proctor.values.providers.base_urls import BaseUrl
from proctor.values.providers.pools_file import PoolsFile
from services.common.clock import SystemClock
from services.common.lifecycle import every
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.common.nats.jetstream import JetStream
from services.common.postgres import PostgresSession
from services.common.process import release
from services.scheduler.changes.postgres import PostgresChanges
from services.scheduler.dispatch.dispatch_run import DriverContext, DriverTimings
from services.scheduler.dispatch.dispatch_shards import CreditRule, DispatchShards
from services.scheduler.dispatch.drive_run import RunDriver
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.dispatch.nats import NatsShardStream
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.leadership.postgres_clock import PostgresClock
from services.scheduler.planning.find_tasks import FindTasks
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.planning.postgres import PostgresShards
from services.scheduler.pricing.prices import ResolvePrice
from services.scheduler.pricing.yaml_prices import YamlPrices
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.rate_limits.nats import NatsRateReports
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RetryBudget
from services.scheduler.runs.admission.postgres import PostgresQueue, PostgresSlots
from services.scheduler.runs.admission.show_forecast import ForecastQueue
from services.scheduler.runs.lifecycle.change_state import DeleteRun
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.postgres import PostgresLedRuns, PostgresRuns
from services.scheduler.runs.limits.postgres import PostgresLimits
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.reads.postgres import PostgresRunLists
from services.scheduler.session import QUERIES
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from services.scheduler.uploads.storage.store_parts import LoadRows
from services.scheduler.uploads.wiring import UploadParts
from services.scheduler.workers.nats import NatsWorkerRegistry

FORGET_SECONDS = 60.0
MAKE_STREAMS_SECONDS = 1.0


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
        self.session = PostgresSession(postgres, QUERIES)
        self.clock = PostgresClock(self.session, SystemClock())
        self.nats, self.results = nats, results
        self.jetstream = JetStream(nats)
        self.tracker = ProgressTracker()
        self.registry = NatsWorkerRegistry(
            bucket=Bucket(self.jetstream, streams.WORKERS_BUCKET),
            clock=self.clock,
            changed=lambda: self.tracker.touch(ANY_RUN, self.clock.monotonic()),
        )
        self.rates = RateLimitTracker()
        self.retry_budget = RetryBudget(settings.max_retried_share)
        self.controls = NatsRunControls(
            connection=nats,
            bucket=Bucket(self.jetstream, streams.RUNS_BUCKET),
            budget=self.retry_budget,
            clock=self.clock,
        )
        self.record = GrpcRunRecord(results, max_failed_share=settings.max_failed_share)
        self.limits = PostgresLimits(self.session, _limits_of(settings))
        self.runs = PostgresRuns(self.session, self.limits)
        self.run_lists = PostgresRunLists(self.session)
        self.changes = PostgresChanges(self.session)
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

    async def keep_streams(self) -> NoReturn:
        """No other service makes streams or buckets."""
        settings = self.settings
        limits = streams.StreamLimits(
            settings.stream_replicas, settings.work_stream_bytes, settings.outcome_stream_bytes
        )
        maker = streams.StreamMaker(self.nats, [pool.name for pool in self.pools], limits)
        await every(MAKE_STREAMS_SECONDS, maker.make_missing, name="make streams")

    async def forget_idle(self) -> NoReturn:
        async def forget() -> None:
            self.tracker.forget_idle(self.clock.monotonic())
            self.rates.forget_idle(self.clock.monotonic())
            await self.limits.forget_requests(self.clock.now())

        await every(FORGET_SECONDS, forget, name="forget idle runs")


def _limits_of(settings: SchedulerSettings) -> QueueLimits:
    return QueueLimits(
        max_running=settings.max_running_runs,
        max_pending_per_user=settings.max_pending_runs_per_user,
        max_requests_per_minute=settings.max_requests_per_minute,
        max_reads_per_minute=settings.max_reads_per_minute,
        run_time_limit=timedelta(seconds=settings.run_time_limit_seconds),
        min_run_time=timedelta(seconds=settings.min_run_time_seconds),
        priorities=settings.highest_priorities,
    )


def make_run_leader(shared: Shared) -> LeadRuns:
    led_runs = PostgresLedRuns(shared.session)
    any_model_pools = frozenset(pool.name for pool in shared.pools if pool.serves_any_model)
    stream = NatsShardStream(
        jetstream=shared.jetstream,
        samples=shared.record,
        any_model_pools=any_model_pools,
        clock=shared.clock,
        shard_key=shared.settings.shard_key.get_secret_value(),
    )
    context = _driver_context(shared, led_runs, stream)
    return LeadRuns(
        runs=led_runs,
        slots=PostgresSlots(shared.session, shared.limits),
        stream=stream,
        controls=shared.controls,
        tracker=shared.tracker,
        clock=shared.clock,
        new_driver=partial(RunDriver, context),
        pools=tuple(pool.name for pool in shared.pools),
    )


def _driver_context(shared: Shared, led_runs: PostgresLedRuns, stream: NatsShardStream) -> DriverContext:
    settings, shards = shared.settings, PostgresShards(shared.session)
    return DriverContext(
        runs=shared.runs,
        planner=PlanRun(
            runs=led_runs,
            shards=shards,
            record=shared.record,
            tasks=FindTasks(
                suites=shared.suites.catalogue,
                rows=shared.suites.rows,
                contents=shared.uploads.datasets,
                loading=LoadRows(shared.uploads.objects),
            ),
            proctor_version=release(),
            clock=shared.clock,
            registry=shared.registry,
        ),
        dispatcher=DispatchShards(
            shards=shards,
            stream=stream,
            tracker=shared.tracker,
            registry=shared.registry,
            rule=CreditRule(
                floor=settings.dispatch_floor_shards,
                ceiling=settings.dispatch_ceiling_shards,
                seconds_ahead=settings.dispatch_seconds_ahead,
            ),
        ),
        reconciler=ReconcileShards(
            shards=shards, record=shared.record, stream=stream, tracker=shared.tracker, clock=shared.clock
        ),
        finisher=FinishRun(
            runs=led_runs,
            record=shared.record,
            stream=stream,
            controls=shared.controls,
            clock=shared.clock,
            max_failed_share=settings.max_failed_share,
        ),
        controls=shared.controls,
        registry=shared.registry,
        tracker=shared.tracker,
        clock=shared.clock,
        timings=DriverTimings(
            quiet_seconds=settings.reconcile_quiet_seconds,
            suspicious_seconds=min(settings.reconcile_quiet_seconds, 1.0),
        ),
    )
