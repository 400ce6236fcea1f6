"""Makes what leads the runs: planner, dispatcher, reconciler and the drivers over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.values.pools import Pool
from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.jetstream import JetStream
from services.common.postgres import PostgresSession
from services.common.process import release
from services.scheduler.dispatch.dispatch_run import DriverContext, DriverTimings
from services.scheduler.dispatch.dispatch_shards import CreditRule, DispatchShards
from services.scheduler.dispatch.drive_run import RunDriver
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.dispatch.nats import NatsShardStream
from services.scheduler.dispatch.postgres import PostgresShards
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.find_tasks import FindDatasetTasks, FindSuiteTasks
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.planning.plan_run import AddMissingShards, PlanRetry, PlanRun
from services.scheduler.planning.postgres import PostgresPlans
from services.scheduler.progress.progress_tracker import ProgressTracker
from services.scheduler.runs.admission.postgres import PostgresSlots
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.postgres import PostgresLedRuns, PostgresRuns
from services.scheduler.runs.limits.postgres import PostgresLimits
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.uploads.storage.store_parts import LoadRows
from services.scheduler.uploads.wiring import UploadParts
from services.scheduler.workers.nats import NatsWorkerRegistry


@dataclass(frozen=True, kw_only=True)
class RunLeaderParts:
    """What the leader shares with the calls that the scheduler answers."""

    settings: SchedulerSettings
    pools: Sequence[Pool]
    clock: Clock
    session: PostgresSession
    jetstream: JetStream
    tracker: ProgressTracker
    registry: NatsWorkerRegistry
    controls: NatsRunControls
    record: GrpcRunRecord
    limits: PostgresLimits
    runs: PostgresRuns
    suites: SuiteParts
    uploads: UploadParts


def make_run_leader(parts: RunLeaderParts) -> LeadRuns:
    led_runs = PostgresLedRuns(parts.session)
    any_model_pools = frozenset(pool.name for pool in parts.pools if pool.serves_any_model)
    stream = NatsShardStream(jetstream=parts.jetstream, samples=parts.record, any_model_pools=any_model_pools)
    context = _driver_context(parts, led_runs, stream)

    def new_driver(token: FencingToken, run_id: RunId, runs_of_pool: Callable[[str], int]) -> RunDriver:
        return RunDriver(context, token, run_id, runs_of_pool)

    return LeadRuns(
        runs=led_runs,
        slots=PostgresSlots(parts.session, parts.limits),
        stream=stream,
        controls=parts.controls,
        tracker=parts.tracker,
        clock=parts.clock,
        new_driver=new_driver,
    )


def _driver_context(
    parts: RunLeaderParts, led_runs: PostgresLedRuns, stream: NatsShardStream
) -> DriverContext:
    settings = parts.settings
    plans, shards = PostgresPlans(parts.session), PostgresShards(parts.session)
    return DriverContext(
        runs=parts.runs,
        planner=_planner(parts, led_runs, plans),
        retry_planner=PlanRetry(
            runs=parts.runs,
            plans=plans,
            record=parts.record,
            missing_shards=AddMissingShards(plans=plans, record=parts.record),
        ),
        dispatcher=DispatchShards(
            shards=shards,
            stream=stream,
            tracker=parts.tracker,
            registry=parts.registry,
            rule=CreditRule(
                floor=settings.dispatch_floor_shards,
                ceiling=settings.dispatch_ceiling_shards,
                seconds_ahead=settings.dispatch_seconds_ahead,
            ),
        ),
        reconciler=ReconcileShards(
            plans=plans,
            shards=shards,
            record=parts.record,
            stream=stream,
            tracker=parts.tracker,
            clock=parts.clock,
        ),
        finisher=FinishRun(
            runs=led_runs,
            record=parts.record,
            stream=stream,
            controls=parts.controls,
            clock=parts.clock,
            max_failed_share=settings.max_failed_share,
        ),
        controls=parts.controls,
        registry=parts.registry,
        tracker=parts.tracker,
        clock=parts.clock,
        timings=DriverTimings(
            quiet_seconds=settings.reconcile_quiet_seconds,
            suspicious_seconds=min(settings.reconcile_quiet_seconds, 1.0),
        ),
    )


def _planner(parts: RunLeaderParts, led_runs: PostgresLedRuns, plans: PostgresPlans) -> PlanRun:
    return PlanRun(
        runs=led_runs,
        plans=plans,
        record=parts.record,
        suite_tasks=FindSuiteTasks(suites=parts.suites.catalogue, rows=parts.suites.rows),
        dataset_tasks=FindDatasetTasks(
            contents=parts.uploads.datasets, loading=LoadRows(parts.uploads.objects)
        ),
        proctor_version=release(),
        clock=parts.clock,
        registry=parts.registry,
        missing_shards=AddMissingShards(plans=plans, record=parts.record),
    )
