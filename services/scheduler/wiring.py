"""Makes the scheduler: opens its connections, joins the parts of its topics, and closes them in reverse."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

from proctor.values.providers.base_urls import BaseUrl
from proctor.values.providers.pools_file import PoolsFile
from services.common.clock import SystemClock
from services.common.grpc.client import open_channel
from services.common.grpc.server import GrpcServer, Registration, serve_grpc
from services.common.lifecycle import BackgroundLoops, every
from services.common.migrations import prepare_schema
from services.common.nats import streams
from services.common.nats.access import NatsAccess
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.postgres import PostgresSession, close_pool, connect_pool, watch_pool
from services.common.process import return_freed_memory
from services.scheduler.batches import grpc_api as batches_grpc_api
from services.scheduler.batches.postgres import refuse_used_file
from services.scheduler.batches.wiring import make_batches
from services.scheduler.changes import grpc_api as changes_grpc_api
from services.scheduler.changes.wiring import make_change_api, make_change_cleanup
from services.scheduler.dispatch.wiring import LedRuns, make_run_leader
from services.scheduler.leadership.leader_election import FencingToken, lead_when_elected
from services.scheduler.leadership.postgres import PostgresLeaderElection
from services.scheduler.leadership.postgres_clock import PostgresClock
from services.scheduler.limits.wiring import make_limits
from services.scheduler.metrics import LEADING
from services.scheduler.planning.find_tasks import FindTasks
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.postgres import MIGRATIONS, QUERIES, SCHEMA, Connections
from services.scheduler.pricing.prices import ResolvePrice
from services.scheduler.pricing.yaml_prices import YamlPrices
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.rate_limits.wiring import make_rate_limits
from services.scheduler.rollouts import grpc_api as rollouts_grpc_api
from services.scheduler.rollouts.artifacts import grpc_api as artifacts_grpc_api
from services.scheduler.rollouts.artifacts.delete_artifacts import DeleteArtifacts
from services.scheduler.rollouts.wiring import OrderParts, make_rollouts
from services.scheduler.runs import grpc_api
from services.scheduler.runs.grpc_api import GrpcApi
from services.scheduler.runs.lifecycle.postgres import refuse_used_by_run
from services.scheduler.runs.reads import grpc_api as queue_grpc_api
from services.scheduler.runs.wiring import OrderSources, RunRecords, RunSignals, make_runs
from services.scheduler.scaling import grpc_api as scaling_grpc_api
from services.scheduler.scaling.wiring import make_scaling
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites import grpc_api as suites_grpc_api
from services.scheduler.suites.wiring import make_suites
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from services.scheduler.uploads import grpc_api as uploads_grpc_api
from services.scheduler.uploads.quotas import grpc_api as quotas_grpc_api
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.storage.store_parts import LoadRows
from services.scheduler.uploads.wiring import make_uploads
from services.scheduler.workers.wiring import make_workers
from services.scheduler.workers.yaml_pools import read_allowed_base_urls, read_pools

SERVICE_NAMES = (
    grpc_api.SERVICE_NAME,
    suites_grpc_api.SERVICE_NAME,
    *queue_grpc_api.SERVICE_NAMES,
    *uploads_grpc_api.SERVICE_NAMES,
    quotas_grpc_api.SERVICE_NAME,
    batches_grpc_api.SERVICE_NAME,
    changes_grpc_api.SERVICE_NAME,
    scaling_grpc_api.SERVICE_NAME,
    rollouts_grpc_api.SERVICE_NAME,
    artifacts_grpc_api.SERVICE_NAME,
)
# How soon a thread that renders samples lets the event loop run. Python's default is five times as long
# (decision 0032).
THREAD_SWITCH_SECONDS = 0.001
FORGET_SECONDS = 60.0
REPORT_SECONDS = 5.0
# Workers wait until there are streams, at a first start and after a loss.
MAKE_STREAMS_SECONDS = 1.0


class RunningScheduler:
    """Answers calls; leads, or waits to be elected."""

    def __init__(self, *, grpc_server: GrpcServer, loops: BackgroundLoops, drain_seconds: float) -> None:
        self.grpc = grpc_server
        self._loops = loops
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        """Ends leadership: another replica is elected and repeats what was interrupted here."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain_seconds):
                await self._loops.cancel()

    async def drain(self) -> None:
        await self.grpc.stop(self._drain_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """Files that operators write, read before anything is opened, since nothing works without them."""

    pools: PoolsFile
    allowed_base_urls: Sequence[BaseUrl]
    suites: YamlInstalledSuites
    prices: YamlPrices


@asynccontextmanager
async def running_scheduler(settings: SchedulerSettings) -> AsyncIterator[RunningScheduler]:
    definitions = Definitions(
        pools=read_pools(settings.pools_file),
        allowed_base_urls=read_allowed_base_urls(settings.allowed_base_urls),
        suites=YamlInstalledSuites(settings.suites_dir),
        prices=YamlPrices(settings.prices_file),
    )
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    return_freed_memory()
    async with AsyncExitStack() as opened:
        connections, clock = await _connect(settings, opened)
        parts = SchedulerParts(settings=settings, connections=connections, definitions=definitions)
        await parts.subscribe()
        opened.push_async_callback(parts.workers.list_models.close)
        server = await serve_grpc(
            settings.listen_address or settings.scheduler_address, parts.apis(), SERVICE_NAMES
        )
        opened.push_async_callback(server.stop, 0)
        election = PostgresLeaderElection(dsn=settings.postgres_dsn, schema=SCHEMA)
        loops = BackgroundLoops(
            {
                **parts.loops(),
                "read the clock of postgres": clock.keep(),
                "lead when elected": lead_when_elected(election, parts.lead),
            }
        )
        opened.push_async_callback(loops.cancel)
        yield RunningScheduler(grpc_server=server, loops=loops, drain_seconds=settings.drain_seconds)


async def _connect(settings: SchedulerSettings, opened: AsyncExitStack) -> tuple[Connections, PostgresClock]:
    await prepare_schema(settings, SCHEMA, MIGRATIONS)
    pool = await connect_pool(settings.postgres_dsn, schema=SCHEMA, max_size=settings.postgres_connections)
    opened.push_async_callback(close_pool, pool)
    watch_pool("scheduler", pool)
    nats = await connect_nats(NatsAccess.of(settings), "scheduler")
    opened.push_async_callback(nats.close)
    results = open_channel(settings.results_address)
    opened.push_async_callback(results.close)
    patience = settings.patience_seconds
    session = PostgresSession(pool=pool, queries=QUERIES, patience_seconds=patience)
    clock = PostgresClock(session, machine=SystemClock())
    # Before anything is decided by it; a loop keeps it from then on.
    await clock.sync()
    return Connections(postgres=session, jetstream=JetStream(nats), results=results, clock=clock), clock


class SchedulerParts:
    """The parts of each topic, from the lowest to the highest."""

    def __init__(
        self, *, settings: SchedulerSettings, connections: Connections, definitions: Definitions
    ) -> None:
        self._settings, self._connections, self._pools = settings, connections, definitions.pools
        self._tracker, clock = ProgressTracker(), connections.clock
        self._record = GrpcRunRecord(connections.results, max_failed_share=settings.max_failed_share)
        limits = make_limits(settings, connections)
        storage = PostgresStorage(connections.postgres, limits=limits)
        self._suites = make_suites(
            settings, connections, definitions.suites, check_storage=storage.check_suite
        )
        self._uploads = make_uploads(
            settings,
            connections,
            refuse_used_dataset=refuse_used_by_run,
            refuse_used_file=refuse_used_file,
            storage=storage,
        )
        self._rate_limits = make_rate_limits(settings, connections)
        self.workers = make_workers(
            settings,
            connections,
            pools=definitions.pools.pools,
            changed=lambda: self._tracker.touch(ANY_RUN, clock.monotonic()),
        )
        self._signals = RunSignals(
            tracker=self._tracker,
            registry=self.workers.registry,
            rates=self._rate_limits.tracker,
            retry_budget=self._rate_limits.retry_budget,
        )
        self._runs = make_runs(
            connections,
            limits=limits,
            sources=self._order_sources(definitions),
            signals=self._signals,
            records=RunRecords(record=self._record, artifacts=DeleteArtifacts(objects=self._uploads.objects)),
        )
        self._batches = make_batches(
            settings, connections, runs=self._runs, uploads=self._uploads, storage=storage
        )
        self._rollouts = make_rollouts(
            settings,
            connections,
            OrderParts(suites=self._suites, uploads=self._uploads, runs=self._runs, storage=storage),
        )
        self._scaling = make_scaling(
            settings, connections, pools=definitions.pools.pools, runs=self._runs, signals=self._signals
        )

    def _order_sources(self, definitions: Definitions) -> OrderSources:
        return OrderSources(
            suites=self._suites.catalogue,
            datasets=self._uploads.datasets,
            pools=definitions.pools,
            pricing=ResolvePrice(definitions.prices),
            allowed_base_urls=definitions.allowed_base_urls,
        )

    def apis(self) -> list[Registration]:
        runs = self._runs
        run_api = GrpcApi(
            submit=runs.submit,
            change=runs.change,
            delete=runs.delete,
            reads=runs.reads,
            suites=self._suites.catalogue,
            models=self.workers.list_models,
            aliases=self._pools.aliases,
            registry=self.workers.registry,
        )
        apis = (
            run_api,
            self._suites.api,
            runs.queue_api,
            *self._uploads.apis,
            self._batches.api,
            make_change_api(self._connections),
            self._scaling.api,
            self._rollouts.api,
            self._rollouts.artifact_api,
        )
        return [api.register for api in apis]

    async def subscribe(self) -> None:
        """Starts to receive reports of results and of workers, also while another scheduler leads."""
        nats, clock = self._connections.jetstream.connection, self._connections.clock
        await NatsProgressReports(connection=nats, tracker=self._tracker, clock=clock).start()
        await self._rate_limits.reports.start()

    def loops(self) -> dict[str, Coroutine[None, None, NoReturn]]:
        """Loops of every scheduler, leader or not. No other service makes streams or buckets."""
        settings = self._settings
        limits = streams.StreamLimits(
            replicas=settings.stream_replicas,
            work_bytes=settings.work_stream_bytes,
            outcome_bytes=settings.outcome_stream_bytes,
        )
        pools = [pool.name for pool in self._pools.pools]
        connection = self._connections.jetstream.connection
        maker = streams.StreamMaker(connection=connection, pools=pools, limits=limits)
        return {
            "make streams": every(MAKE_STREAMS_SECONDS, maker.make_missing, name="make streams"),
            "forget idle runs": every(FORGET_SECONDS, self._forget_idle, name="forget idle runs"),
            "follow heartbeats": self.workers.registry.listen(),
            **self._rollouts.loops(),
            **self._reports(),
        }

    def _reports(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        """Figures for the metrics, where they are served."""
        if not self._settings.metrics_address:
            return {}

        async def report() -> None:
            self.workers.report_workers.report()
            await self._runs.report_queue.report()
            await self._scaling.show.report()

        return {"report metrics": every(REPORT_SECONDS, report, name="report metrics")}

    async def lead(self, token: FencingToken) -> None:
        """Everything that only the leader does, as long as its term lasts."""
        with LEADING.track_inprogress():
            await self._lead(token)

    async def _lead(self, token: FencingToken) -> None:
        tasks = FindTasks(
            suites=self._suites.catalogue,
            rows=self._suites.rows,
            contents=self._uploads.datasets,
            loading=LoadRows(self._uploads.objects),
        )
        led = LedRuns(
            runs=self._runs,
            signals=self._signals,
            pools=self._pools.pools,
            tasks=tasks,
            record=self._record,
        )
        leader = make_run_leader(self._settings, self._connections, led)
        old_changes = make_change_cleanup(self._settings, self._connections)
        cleanups = (*self._uploads.cleanups, *self._rollouts.cleanups, self._runs.delete, old_changes)
        marks = self._scaling.marks
        loops = BackgroundLoops(
            {
                "lead runs": leader.lead(token),
                "assign quotas": self._rate_limits.assign_quotas.lead(),
                "scale pools": self._scaling.leader.lead(token),
                "finish batches": self._batches.leader.lead(token),
                **({"mark pods": marks.lead()} if marks else {}),
                **{type(cleanup).__name__: cleanup.lead() for cleanup in cleanups},
            }
        )
        try:
            await loops.wait_failed()
        finally:
            await loops.cancel()

    async def _forget_idle(self) -> None:
        clock = self._connections.clock
        self._tracker.forget_idle(clock.monotonic())
        self._rate_limits.tracker.forget_idle(clock.monotonic())
        await self._runs.limits.forget_requests(clock.now())
