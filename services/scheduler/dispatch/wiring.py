"""Joins the parts with which the leader drives runs: planning, dispatch, reconciling and finishing."""

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from proctor.values.providers.pool import Pool
from services.common.process import release, usable_dispatch_proof_key
from services.scheduler.disks.disk_use import AwaitedDisk
from services.scheduler.dispatch.close_finished_run import CloseFinishedRun
from services.scheduler.dispatch.count_unscored import CountUnscored
from services.scheduler.dispatch.decide_run import DecideRun
from services.scheduler.dispatch.dispatch_run import DriverContext, DriverTimings
from services.scheduler.dispatch.dispatch_shards import CreditRule, DispatchShards
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.dispatch.driven_rows import DrivenRows
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.dispatch.nats import NatsShardStream
from services.scheduler.dispatch.ports import RolloutUse
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.judging.yaml_judge_prompts import YamlJudgePrompts
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.postgres import PostgresEventLog
from services.scheduler.planning.find_tasks import FindTasks
from services.scheduler.planning.grpc_answers import GrpcAnswers
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.planning.open_verdicts import OpenVerdicts
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.planning.postgres import PostgresShards
from services.scheduler.planning.rendered_samples import RenderedSamples
from services.scheduler.postgres import Connections
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.progress.wiring import ProgressParts
from services.scheduler.runs.lifecycle.postgres_led import PostgresLedRuns
from services.scheduler.runs.lifecycle.submit_judges import SubmitJudges
from services.scheduler.runs.wiring import RunParts
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.uploads.storage.store_parts import LoadRows
from services.scheduler.uploads.wiring import UploadParts
from services.scheduler.workers.ports import WorkerRegistry
from services.scheduler.workers.wiring import WorkerParts

# How old the row of a run may be by which it is driven.
_ROW_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchParts:
    leader: LeadRuns
    judges: SubmitJudges

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        return {"lead runs": self.leader.lead(token), "order judges": self.judges.lead(token)}


def make_dispatch(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    runs: RunParts,
    suites: SuiteParts,
    uploads: UploadParts,
    progress: ProgressParts,
    workers: WorkerParts,
    rollout_use: RolloutUse,
) -> DispatchParts:
    pools = workers.pools.pools
    led_runs = PostgresLedRuns(session=connections.postgres)
    record = GrpcRunRecord(
        channel=connections.results,
        max_failed_share=settings.max_failed_share,
        completing_pools=frozenset(pool.name for pool in pools if pool.completes_text),
    )
    rendered, tasks = RenderedSamples(), _find_tasks(connections, suites, uploads)
    stream = _shard_stream(settings, connections, record, rendered, pools)
    planner = _planner(connections, led_runs, record=record, rendered=rendered, tasks=tasks, workers=workers)
    context = _driver_context(
        settings,
        connections,
        runs=runs,
        led_runs=led_runs,
        planner=planner,
        stream=stream,
        record=record,
        unscored=CountUnscored(use=rollout_use, record=record),
        tracker=progress.tracker,
        registry=workers.registry,
        awaited_disk=runs.disks.watch.awaited,
    )
    leader = LeadRuns(
        runs=led_runs,
        slots=runs.slots,
        stream=stream,
        controls=runs.controls,
        tracker=progress.tracker,
        clock=connections.clock,
        new_driver=partial(DriveRun, context),
        awaited_disk=runs.disks.watch.awaited,
        pools=tuple(pool.name for pool in pools),
    )
    return DispatchParts(
        leader=leader, judges=SubmitJudges(runs=led_runs, submit=runs.submit, clock=connections.clock)
    )


def _shard_stream(
    settings: SchedulerSettings,
    connections: Connections,
    record: GrpcRunRecord,
    rendered: RenderedSamples,
    pools: Sequence[Pool],
) -> NatsShardStream:
    return NatsShardStream(
        jetstream=connections.jetstream,
        samples=record,
        rendered=rendered,
        any_model_pools=frozenset(pool.name for pool in pools if pool.serves_any_model),
        clock=connections.clock,
        dispatch_proof_key=usable_dispatch_proof_key(settings.dispatch_proof_key),
    )


def _driver_context(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    runs: RunParts,
    led_runs: PostgresLedRuns,
    planner: PlanRun,
    stream: NatsShardStream,
    record: GrpcRunRecord,
    tracker: ProgressTracker,
    registry: WorkerRegistry,
    unscored: CountUnscored,
    awaited_disk: AwaitedDisk,
) -> DriverContext:
    clock, controls, shards = connections.clock, runs.controls, PostgresShards(session=connections.postgres)
    return DriverContext(
        runs=runs.store,
        rows=DrivenRows(runs=runs.store, clock=clock, max_age_seconds=_ROW_SECONDS),
        planner=planner,
        dispatcher=DispatchShards(
            shards=shards, stream=stream, tracker=tracker, registry=registry, rule=_credit_rule(settings)
        ),
        reconciler=ReconcileShards(shards=shards, record=record, stream=stream, tracker=tracker, clock=clock),
        finisher=FinishRun(
            runs=led_runs,
            shards=shards,
            record=record,
            controls=controls,
            clock=clock,
            unscored=unscored,
            max_failed_share=settings.max_failed_share,
        ),
        closer=CloseFinishedRun(
            runs=led_runs, shards=shards, record=record, stream=stream, controls=controls, unscored=unscored
        ),
        unscored=unscored,
        events=PostgresEventLog(session=connections.postgres),
        decider=DecideRun(runs=runs.store, led=led_runs, record=record, tracker=tracker, clock=clock),
        controls=controls,
        registry=registry,
        tracker=tracker,
        clock=clock,
        timings=DriverTimings(quiet_seconds=settings.reconcile_quiet_seconds),
        awaited_disk=awaited_disk,
    )


def _planner(
    connections: Connections,
    led_runs: PostgresLedRuns,
    *,
    record: GrpcRunRecord,
    rendered: RenderedSamples,
    tasks: FindTasks,
    workers: WorkerParts,
) -> PlanRun:
    return PlanRun(
        runs=led_runs,
        shards=PostgresShards(session=connections.postgres),
        record=record,
        tasks=tasks,
        proctor_version=release(),
        clock=connections.clock,
        registry=workers.registry,
        concurrencies={pool.name: pool.concurrency for pool in workers.pools.pools},
        rendered=rendered,
    )


def _find_tasks(connections: Connections, suites: SuiteParts, uploads: UploadParts) -> FindTasks:
    return FindTasks(
        suites=suites.catalogue,
        rows=suites.rows,
        contents=uploads.datasets,
        load_rows=LoadRows(objects=uploads.objects),
        open_verdicts=OpenVerdicts(
            prompts=YamlJudgePrompts(), answers=GrpcAnswers(channel=connections.results)
        ),
    )


def _credit_rule(settings: SchedulerSettings) -> CreditRule:
    return CreditRule(
        min_shards=settings.min_dispatched_shards,
        max_shards=settings.max_dispatched_shards,
        seconds_ahead=settings.dispatch_seconds_ahead,
    )
