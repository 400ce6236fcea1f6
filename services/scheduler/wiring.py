"""The only module that knows all concrete parts of the scheduler: it makes, joins and closes them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NoReturn
from uuid import uuid4

import grpc

from services.common.grpc.client import open_channel
from services.common.grpc.server import GrpcServer, serve_grpc
from services.common.migrations import prepare_schema
from services.common.nats import streams
from services.common.nats.access import NatsAccess
from services.common.nats.bucket import Bucket
from services.common.nats.connection import connect_nats
from services.common.postgres import close_pool, connect_pool
from services.common.process import return_freed_memory
from services.scheduler import grpc_api
from services.scheduler.batches import grpc_api as batches_grpc_api
from services.scheduler.batches.finish_batch import FinishBatch, LeadBatches
from services.scheduler.batches.grpc_api import GrpcBatchApi
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.show_batch import CancelBatch, ShowBatch
from services.scheduler.batches.submit_batch import SubmitBatch
from services.scheduler.changes import grpc_api as changes_grpc_api
from services.scheduler.changes.grpc_api import GrpcChangeApi
from services.scheduler.dispatch.wiring import Definitions, Shared, make_run_leader
from services.scheduler.grpc_api import GrpcApi
from services.scheduler.leadership.leader_election import FencingToken, lead_when_elected
from services.scheduler.leadership.postgres import PostgresLeaderElection
from services.scheduler.pricing.yaml_prices import YamlPrices
from services.scheduler.rate_limits.assign_quotas import AssignQuotas
from services.scheduler.rate_limits.nats import NatsQuotas
from services.scheduler.runs.lifecycle.change_state import ChangeState
from services.scheduler.runs.lifecycle.submit_run import SubmitRun
from services.scheduler.runs.limits.change_limits import ChangeLimits
from services.scheduler.runs.reads import grpc_api as queue_grpc_api
from services.scheduler.runs.reads.grpc_api import GrpcQueueApi
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.session import MIGRATIONS, SCHEMA
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites import grpc_api as suites_grpc_api
from services.scheduler.suites.grpc_api import GrpcSuiteApi
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from services.scheduler.uploads import grpc_api as uploads_grpc_api
from services.scheduler.uploads.grpc_api import GrpcDatasetApi, GrpcFileApi
from services.scheduler.uploads.stored_file import FileId
from services.scheduler.workers.list_models import ListingRules, ListModels
from services.scheduler.workers.nats import NatsModelListRequests
from services.scheduler.workers.yaml_pools import read_allowed_base_urls, read_pools

SERVICE_NAMES = (
    grpc_api.SERVICE_NAME,
    suites_grpc_api.SERVICE_NAME,
    *queue_grpc_api.SERVICE_NAMES,
    *uploads_grpc_api.SERVICE_NAMES,
    batches_grpc_api.SERVICE_NAME,
    changes_grpc_api.SERVICE_NAME,
)
# Longer than a worker waits for its provider's list.
LIST_MODELS_SECONDS = 10.0
# How soon a thread that renders samples lets the event loop run. Python's default is five times as long.
THREAD_SWITCH_SECONDS = 0.001


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
        await prepare_schema(settings, SCHEMA, MIGRATIONS)
        pool = await connect_pool(
            settings.postgres_dsn, schema=SCHEMA, max_size=settings.postgres_connections
        )
        opened.push_async_callback(close_pool, pool)
        nats = await connect_nats(NatsAccess.of(settings), "scheduler")
        opened.push_async_callback(nats.close)
        channel = open_channel(settings.results_address)
        opened.push_async_callback(channel.close)
        shared = Shared(settings, definitions, postgres=pool, nats=nats, results=channel)
        await shared.clock.sync()
        await shared.subscribe()
        list_models = _list_models(shared)
        opened.push_async_callback(list_models.close)
        server = await serve_grpc(
            settings.listen_address or settings.scheduler_address, _apis(shared, list_models), SERVICE_NAMES
        )
        opened.push_async_callback(server.stop, 0)
        election = PostgresLeaderElection(settings.postgres_dsn, SCHEMA)
        vital = asyncio.ensure_future(
            _together(
                shared.keep_streams(),
                shared.registry.listen(),
                shared.clock.keep(),
                shared.forget_idle(),
                lead_when_elected(election, _lead(shared)),
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


def _list_models(shared: Shared) -> ListModels:
    return ListModels(
        pools=shared.pools,
        registry=shared.registry,
        lists=NatsModelListRequests(
            connection=shared.nats, clock=shared.clock, limit_seconds=LIST_MODELS_SECONDS
        ),
        clock=shared.clock,
        rules=ListingRules(shared.settings.list_models_wait_seconds),
    )


def _apis(shared: Shared, list_models: ListModels) -> list[Callable[[grpc.aio.Server], None]]:
    runs = _run_api(shared, list_models)
    apis = (
        runs,
        GrpcSuiteApi(shared.suites.use_cases()),
        GrpcQueueApi(
            show=runs.show,
            change=ChangeLimits(shared.limits),
            limits=shared.limits,
            changes=shared.changes,
            clock=shared.clock,
        ),
        GrpcChangeApi(shared.changes),
        GrpcDatasetApi(shared.uploads.dataset_use_cases()),
        GrpcFileApi(shared.uploads.file_use_cases()),
        _batch_api(shared, runs),
    )
    return [api.register for api in apis]


def _run_api(shared: Shared, list_models: ListModels) -> GrpcApi:
    return GrpcApi(
        submit=SubmitRun(
            runs=shared.runs,
            suites=shared.suites.catalogue,
            datasets=shared.uploads.datasets,
            pools=shared.pools,
            controls=shared.controls,
            clock=shared.clock,
            pricing=shared.pricing,
            aliases=shared.aliases,
            allowed_base_urls=shared.allowed_base_urls,
        ),
        change=ChangeState(runs=shared.runs, controls=shared.controls, clock=shared.clock),
        delete=shared.deletion,
        show=ShowRun(
            runs=shared.runs,
            lists=shared.run_lists,
            record=shared.record,
            tracker=shared.tracker,
            registry=shared.registry,
            clock=shared.clock,
            forecasts=shared.forecasts,
            changes=shared.changes,
        ),
        suites=shared.suites.catalogue,
        models=list_models,
        aliases=shared.aliases,
        registry=shared.registry,
    )


def _batch_api(shared: Shared, runs: GrpcApi) -> GrpcBatchApi:
    batches = PostgresBatches(shared.session, shared.runs)
    return GrpcBatchApi(
        submit=SubmitBatch(
            batches=batches,
            files=shared.uploads.files,
            submitting=runs.submit,
            limits=shared.limits,
            controls=shared.controls,
            clock=shared.clock,
        ),
        show=ShowBatch(batches=batches, runs=runs.show),
        cancel=CancelBatch(batches=batches, runs=runs.change),
    )


def _batch_leader(shared: Shared) -> LeadBatches:
    batches = PostgresBatches(shared.session, shared.runs)
    finishing = FinishBatch(
        batches=batches,
        files=shared.uploads.files,
        lines=GrpcBatchLines(shared.results),
        objects=shared.uploads.objects,
        clock=shared.clock,
        seconds=shared.settings.max_upload_seconds,
    )
    return LeadBatches(
        batches=batches,
        finishing=finishing,
        clock=shared.clock,
        new_file_id=lambda: FileId(f"file-{uuid4().hex}"),
    )


def _lead(shared: Shared) -> Callable[[FencingToken], Awaitable[None]]:
    """Everything that only the leader does, as long as its term lasts."""
    runs, batches = make_run_leader(shared), _batch_leader(shared)
    quotas = AssignQuotas(
        tracker=shared.rates,
        store=NatsQuotas(Bucket(shared.jetstream, streams.QUOTAS_BUCKET)),
        clock=shared.clock,
    )
    cleanups = (shared.uploads.orphan_collector(), shared.uploads.file_deletion(), shared.deletion)

    async def lead(token: FencingToken) -> None:
        cleaning = [cleanup.lead() for cleanup in cleanups]
        await _together(runs.lead(token), quotas.lead(), batches.lead(token), *cleaning)

    return lead


async def _together(*parts: Coroutine[None, None, None]) -> NoReturn:
    async with asyncio.TaskGroup() as group:
        for part in parts:
            group.create_task(part)
    raise RuntimeError("a part that should never end has ended")


async def _cancelled(task: asyncio.Task[NoReturn]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
