"""Joins the parts of runs: submitting, changing, deleting and showing them, and the limits of the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proctor.values.providers.base_urls import BaseUrl
from proctor.values.providers.pools_file import PoolsFile
from services.common.clock import Clock
from services.common.grpc.server import Registration
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.scheduler.audit.postgres import PostgresAudit
from services.scheduler.disks.wiring import DiskParts
from services.scheduler.judging.yaml_judge_prompts import YamlJudgePrompts
from services.scheduler.limits.change_limits import ChangeLimits
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.postgres import Connections
from services.scheduler.pricing.resolve_price import ResolvePrice
from services.scheduler.pricing.yaml_prices import YamlPrices
from services.scheduler.progress.wiring import ProgressParts
from services.scheduler.rate_limits.wiring import RateLimitParts
from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.admission.postgres import PostgresQueue, PostgresSlots
from services.scheduler.runs.admission.report_queue import ReportQueue
from services.scheduler.runs.archives.archive_runs import ArchiveRuns
from services.scheduler.runs.archives.postgres import PostgresRunArchives
from services.scheduler.runs.grpc_api import SERVICE_NAME, GrpcApi, RunReads
from services.scheduler.runs.grpc_queue_api import QUEUE_SERVICE_NAMES, GrpcQueueApi
from services.scheduler.runs.lifecycle.change_state import ChangeState, DeleteRun
from services.scheduler.runs.lifecycle.label_run import LabelRun
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.ports import ArtifactDeletion, RecordArchive, RecordDeletion
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.submit_run import SubmitRun
from services.scheduler.runs.reads.count_runs import CountRuns
from services.scheduler.runs.reads.estimate_run import EstimateRun
from services.scheduler.runs.reads.list_runs import ListRuns
from services.scheduler.runs.reads.ports import RecordedCounts
from services.scheduler.runs.reads.postgres import PostgresRunLists
from services.scheduler.runs.reads.show_run import ShowRun, WatchRun
from services.scheduler.streams.wiring import StreamParts
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.uploads.wiring import UploadParts
from services.scheduler.workers.wiring import WorkerParts


class RecordOfRuns(RecordArchive, RecordDeletion, RecordedCounts, Protocol):
    """Records of runs in results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    store: PostgresRuns
    slots: PostgresSlots
    limits: PostgresLimits
    controls: NatsRunControls
    submit: SubmitRun
    change: ChangeState
    delete: DeleteRun
    archives: ArchiveRuns
    reads: RunReads
    report_queue: ReportQueue
    disks: DiskParts
    apis: Mapping[str, Registration]


def make_runs(
    connections: Connections,
    *,
    prices: YamlPrices,
    allowed_base_urls: Sequence[BaseUrl],
    limits: PostgresLimits,
    suites: SuiteParts,
    uploads: UploadParts,
    rate_limits: RateLimitParts,
    progress: ProgressParts,
    workers: WorkerParts,
    streams: StreamParts,
    disks: DiskParts,
    record: RecordOfRuns,
    artifacts: ArtifactDeletion,
) -> RunParts:
    """`record` and `artifacts` hold what a run has outside of the scheduler's schema."""
    session, clock, pools = connections.postgres, connections.clock, workers.pools
    store, controls = PostgresRuns(session=session, limits=limits), _make_controls(connections, rate_limits)
    submit = _make_submit(
        store, controls, suites, uploads, clock=clock, pools=pools, prices=prices, base_urls=allowed_base_urls
    )
    change, label = ChangeState(runs=store, controls=controls, clock=clock), LabelRun(runs=store, clock=clock)
    reads = _make_reads(
        connections, store, limits, record, progress=progress, workers=workers, streams=streams, disks=disks
    )
    delete = DeleteRun(runs=store, record=record, artifacts=artifacts, clock=clock)
    archives = _make_archives(connections, store, record, disks)
    api = _make_api(
        submit, change, delete, label, archives=archives, reads=reads, suites=suites, workers=workers
    )
    queue_api = _make_queue_api(
        connections, reads, limits, rate_limits=rate_limits, streams=streams, disks=disks
    )
    return RunParts(
        store=store,
        slots=PostgresSlots(session=session, limits=limits),
        limits=limits,
        controls=controls,
        submit=submit,
        change=change,
        delete=delete,
        archives=archives,
        reads=reads,
        report_queue=ReportQueue(depths=PostgresQueue(session=session), limits=limits, clock=clock),
        disks=disks,
        apis={SERVICE_NAME: api.register, **dict.fromkeys(QUEUE_SERVICE_NAMES, queue_api.register)},
    )


def _make_archives(
    connections: Connections, store: PostgresRuns, record: RecordArchive, disks: DiskParts
) -> ArchiveRuns:
    return ArchiveRuns(
        runs=store,
        archives=PostgresRunArchives(session=connections.postgres),
        record=record,
        clock=connections.clock,
        check_room=disks.watch.check_uploads,
    )


def _make_submit(
    store: PostgresRuns,
    controls: NatsRunControls,
    suites: SuiteParts,
    uploads: UploadParts,
    *,
    clock: Clock,
    pools: PoolsFile,
    prices: YamlPrices,
    base_urls: Sequence[BaseUrl],
) -> SubmitRun:
    return SubmitRun(
        runs=store,
        suites=suites.catalogue,
        datasets=uploads.datasets,
        judge_prompts=YamlJudgePrompts(),
        pools=pools.pools,
        controls=controls,
        clock=clock,
        pricing=ResolvePrice(prices=prices, pools=pools.pools),
        aliases=pools.aliases,
        allowed_base_urls=base_urls,
        executes_code=suites.executes_code,
    )


def _make_controls(connections: Connections, rate_limits: RateLimitParts) -> NatsRunControls:
    return NatsRunControls(
        connection=connections.jetstream.connection,
        bucket=Bucket(jetstream=connections.jetstream, spec=streams.RUNS_BUCKET),
        budget=rate_limits.request_retry_budget,
        clock=connections.clock,
    )


def _make_api(
    submit: SubmitRun,
    change: ChangeState,
    delete: DeleteRun,
    label: LabelRun,
    *,
    archives: ArchiveRuns,
    reads: RunReads,
    suites: SuiteParts,
    workers: WorkerParts,
) -> GrpcApi:
    return GrpcApi(
        submit=submit,
        change=change,
        delete=delete,
        archives=archives,
        label=label,
        reads=reads,
        suites=suites.shown,
        models=workers.list_models,
        aliases=workers.pools.aliases,
        registry=workers.registry,
    )


def _make_queue_api(
    connections: Connections,
    reads: RunReads,
    limits: PostgresLimits,
    *,
    rate_limits: RateLimitParts,
    streams: StreamParts,
    disks: DiskParts,
) -> GrpcQueueApi:
    return GrpcQueueApi(
        list_runs=reads.list_runs,
        rates=rate_limits.tracker,
        change=ChangeLimits(limits=limits),
        limits=limits,
        changes=reads.show_run.changes,
        refused_streams=streams.keep.refused,
        full_disks=disks.watch.full,
        clock=connections.clock,
    )


def _make_reads(
    connections: Connections,
    store: PostgresRuns,
    limits: PostgresLimits,
    record: RecordedCounts,
    *,
    progress: ProgressParts,
    workers: WorkerParts,
    streams: StreamParts,
    disks: DiskParts,
) -> RunReads:
    session, clock = connections.postgres, connections.clock
    tracker, registry, awaited_disk = progress.tracker, workers.registry, disks.watch.awaited
    forecasts = ForecastQueue(
        store=PostgresQueue(session=session),
        limits=limits,
        tracker=tracker,
        registry=registry,
        clock=clock,
        awaited_disk=awaited_disk,
    )
    lists = PostgresRunLists(session=connections.reads)
    count = CountRuns(
        record=record,
        tracker=tracker,
        registry=registry,
        refused_streams=streams.keep.refused,
        awaited_disk=awaited_disk,
        clock=clock,
    )
    show = ShowRun(runs=store, count_runs=count, forecasts=forecasts, changes=PostgresAudit(session=session))
    return RunReads(
        count_runs=count,
        show_run=show,
        watch_run=WatchRun(show_run=show, tracker=tracker, clock=clock),
        list_runs=ListRuns(lists=lists, count_runs=count, forecasts=forecasts, registry=registry),
        estimate_run=EstimateRun(lists=lists, forecasts=forecasts),
    )
