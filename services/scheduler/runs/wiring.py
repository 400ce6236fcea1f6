"""Joins the parts of runs: submitting, changing, deleting and showing them, and the limits of the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proctor.values.providers.base_urls import BaseUrl
from proctor.values.providers.pools_file import PoolsFile
from services.common.grpc.server import Registration
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.scheduler.changes.postgres import PostgresChanges
from services.scheduler.limits.change_limits import ChangeLimits
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import Connections
from services.scheduler.pricing.resolve_price import ResolvePrice
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RequestRetryBudget
from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.admission.postgres import PostgresQueue, PostgresSlots
from services.scheduler.runs.admission.report_queue import ReportQueue
from services.scheduler.runs.grpc_api import SERVICE_NAME, GrpcApi, RunReads
from services.scheduler.runs.grpc_queue_api import QUEUE_SERVICE_NAMES, GrpcQueueApi
from services.scheduler.runs.lifecycle.change_state import ChangeState, DeleteRun
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.ports import ArtifactDeletion, RecordDeletion
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.submit_run import SubmitRun
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.estimate_run import EstimateRun
from services.scheduler.runs.reads.list_runs import ListRuns
from services.scheduler.runs.reads.ports import RecordedCounts
from services.scheduler.runs.reads.postgres import PostgresRunLists
from services.scheduler.runs.reads.show_run import ShowRun, WatchRun
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.uploads.ports import ContentSource
from services.scheduler.workers.list_models import ListModels
from services.scheduler.workers.ports import WorkerRegistry


class RecordOfRuns(RecordDeletion, RecordedCounts, Protocol):
    """Records of runs in results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSources:
    """Sources that an order is checked against, and what is shown of those that it may name."""

    suites: SuiteCatalogue
    shown_suites: SuiteCatalogue
    datasets: ContentSource
    pools: PoolsFile
    models: ListModels
    pricing: ResolvePrice
    allowed_base_urls: Sequence[BaseUrl]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSignals:
    """Signals of runs that execute: progress, workers, how fast these ask, and the request retry budget."""

    tracker: ProgressTracker
    registry: WorkerRegistry
    rates: RateLimitTracker
    request_retry_budget: RequestRetryBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecords:
    """Stores of a run outside of the scheduler's schema: results, and the object store."""

    record: RecordOfRuns
    artifacts: ArtifactDeletion


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    store: PostgresRuns
    slots: PostgresSlots
    limits: PostgresLimits
    controls: NatsRunControls
    submit: SubmitRun
    change: ChangeState
    delete: DeleteRun
    reads: RunReads
    report_queue: ReportQueue
    forecasts: ForecastQueue
    apis: Mapping[str, Registration]


def make_runs(
    connections: Connections,
    *,
    limits: PostgresLimits,
    sources: OrderSources,
    signals: RunSignals,
    records: RunRecords,
) -> RunParts:
    session, clock = connections.postgres, connections.clock
    store = PostgresRuns(session=session, limits=limits)
    controls = NatsRunControls(
        connection=connections.jetstream.connection,
        bucket=Bucket(jetstream=connections.jetstream, spec=streams.RUNS_BUCKET),
        budget=signals.request_retry_budget,
        clock=clock,
    )
    reads = _make_reads(connections, store=store, limits=limits, signals=signals, record=records.record)
    submit = _make_submit(connections, store=store, controls=controls, sources=sources)
    change = ChangeState(runs=store, controls=controls, clock=clock)
    delete = DeleteRun(runs=store, record=records.record, artifacts=records.artifacts, clock=clock)
    api = GrpcApi(
        submit=submit,
        change=change,
        delete=delete,
        reads=reads,
        suites=sources.shown_suites,
        models=sources.models,
        aliases=sources.pools.aliases,
        registry=signals.registry,
    )
    queue_api = _make_queue_api(connections, reads=reads, limits=limits, signals=signals)
    return RunParts(
        store=store,
        slots=PostgresSlots(session=session, limits=limits),
        limits=limits,
        controls=controls,
        submit=submit,
        change=change,
        delete=delete,
        reads=reads,
        forecasts=reads.show_run.forecasts,
        report_queue=ReportQueue(depths=PostgresQueue(session=session), limits=limits, clock=clock),
        apis={SERVICE_NAME: api.register, **dict.fromkeys(QUEUE_SERVICE_NAMES, queue_api.register)},
    )


def _make_queue_api(
    connections: Connections, *, reads: RunReads, limits: PostgresLimits, signals: RunSignals
) -> GrpcQueueApi:
    return GrpcQueueApi(
        list_runs=reads.list_runs,
        rates=signals.rates,
        change=ChangeLimits(limits=limits),
        limits=limits,
        changes=reads.show_run.changes,
        clock=connections.clock,
    )


def _make_submit(
    connections: Connections, *, store: PostgresRuns, controls: NatsRunControls, sources: OrderSources
) -> SubmitRun:
    return SubmitRun(
        runs=store,
        suites=sources.suites,
        datasets=sources.datasets,
        pools=sources.pools.pools,
        controls=controls,
        clock=connections.clock,
        pricing=sources.pricing,
        aliases=sources.pools.aliases,
        allowed_base_urls=sources.allowed_base_urls,
    )


def _make_reads(
    connections: Connections,
    *,
    store: PostgresRuns,
    limits: PostgresLimits,
    signals: RunSignals,
    record: RecordedCounts,
) -> RunReads:
    session, clock = connections.postgres, connections.clock
    forecasts = ForecastQueue(
        store=PostgresQueue(session=session),
        limits=limits,
        tracker=signals.tracker,
        registry=signals.registry,
        clock=clock,
    )
    lists = PostgresRunLists(session=connections.reads)
    count = CountRuns(record=record, tracker=signals.tracker, registry=signals.registry, clock=clock)
    show = ShowRun(
        runs=store, count_runs=count, forecasts=forecasts, changes=PostgresChanges(session=session)
    )
    return RunReads(
        count_runs=count,
        show_run=show,
        watch_run=WatchRun(show_run=show, tracker=signals.tracker, clock=clock),
        list_runs=ListRuns(lists=lists, count_runs=count, forecasts=forecasts, registry=signals.registry),
        estimate_run=EstimateRun(lists=lists, forecasts=forecasts),
    )
