"""Joins the parts with which the leader drives runs: planning, dispatch, reconciling and finishing."""

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from proctor.values.providers.pool import Pool
from services.common.lifecycle import every
from services.common.nats.streams import StreamLimits, StreamMaker
from services.common.process import release, usable_dispatch_proof_key
from services.scheduler.dispatch.close_finished_run import CloseFinishedRun
from services.scheduler.dispatch.dispatch_run import DriverContext, DriverTimings
from services.scheduler.dispatch.dispatch_shards import CreditRule, DispatchShards
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.dispatch.finish_run import FinishRun
from services.scheduler.dispatch.lead_runs import LeadRuns
from services.scheduler.dispatch.nats import NatsShardStream
from services.scheduler.dispatch.reconcile_shards import ReconcileShards
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.find_tasks import FindTasks
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.planning.plan_run import PlanRun
from services.scheduler.planning.postgres import PostgresShards
from services.scheduler.postgres import Connections
from services.scheduler.runs.lifecycle.postgres import PostgresLedRuns
from services.scheduler.runs.wiring import RunParts, RunSignals
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.uploads.storage.store_parts import LoadRows
from services.scheduler.uploads.wiring import UploadParts

# Workers wait until there are streams, at a first start and after a loss.
MAKE_STREAMS_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedRuns:
    """The runs of the leader, with the use cases and stores for them."""

    runs: RunParts
    signals: RunSignals
    pools: Sequence[Pool]
    suites: SuiteParts
    uploads: UploadParts
    record: GrpcRunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchParts:
    settings: SchedulerSettings
    connections: Connections
    led: LedRuns
    streams: StreamMaker

    def loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        """No other service makes streams or buckets."""
        return {"make streams": every(MAKE_STREAMS_SECONDS, self.streams.make_missing, name="make streams")}

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        """A new leader in each term: what it holds of runs is of that term."""
        return {"lead runs": _make_run_leader(self.settings, self.connections, self.led).lead(token)}


def make_dispatch(settings: SchedulerSettings, connections: Connections, *, led: LedRuns) -> DispatchParts:
    limits = StreamLimits(
        replicas=settings.stream_replicas,
        work_bytes=settings.work_stream_bytes,
        outcome_bytes=settings.outcome_stream_bytes,
    )
    streams = StreamMaker(
        connection=connections.jetstream.connection, pools=[pool.name for pool in led.pools], limits=limits
    )
    return DispatchParts(settings=settings, connections=connections, led=led, streams=streams)


def _make_run_leader(settings: SchedulerSettings, connections: Connections, led: LedRuns) -> LeadRuns:
    led_runs = PostgresLedRuns(session=connections.postgres)
    stream = NatsShardStream(
        jetstream=connections.jetstream,
        samples=led.record,
        any_model_pools=frozenset(pool.name for pool in led.pools if pool.serves_any_model),
        clock=connections.clock,
        dispatch_proof_key=usable_dispatch_proof_key(settings.dispatch_proof_key),
    )
    context = _driver_context(settings, connections, led, led_runs=led_runs, stream=stream)
    return LeadRuns(
        runs=led_runs,
        slots=led.runs.slots,
        stream=stream,
        controls=led.runs.controls,
        tracker=led.signals.tracker,
        clock=connections.clock,
        new_driver=partial(DriveRun, context),
        pools=tuple(pool.name for pool in led.pools),
    )


def _driver_context(
    settings: SchedulerSettings,
    connections: Connections,
    led: LedRuns,
    *,
    led_runs: PostgresLedRuns,
    stream: NatsShardStream,
) -> DriverContext:
    clock, record = connections.clock, led.record
    tracker, registry = led.signals.tracker, led.signals.registry
    shards = PostgresShards(session=connections.postgres)
    return DriverContext(
        runs=led.runs.store,
        planner=PlanRun(
            runs=led_runs,
            shards=shards,
            record=record,
            tasks=_find_tasks(led),
            proctor_version=release(),
            clock=clock,
            registry=registry,
        ),
        dispatcher=DispatchShards(
            shards=shards, stream=stream, tracker=tracker, registry=registry, rule=_credit_rule(settings)
        ),
        reconciler=ReconcileShards(shards=shards, record=record, stream=stream, tracker=tracker, clock=clock),
        finisher=FinishRun(
            runs=led_runs,
            record=record,
            controls=led.runs.controls,
            clock=clock,
            max_failed_share=settings.max_failed_share,
        ),
        closer=CloseFinishedRun(runs=led_runs, record=record, stream=stream, controls=led.runs.controls),
        controls=led.runs.controls,
        registry=registry,
        tracker=tracker,
        clock=clock,
        timings=DriverTimings(quiet_seconds=settings.reconcile_quiet_seconds),
    )


def _find_tasks(led: LedRuns) -> FindTasks:
    return FindTasks(
        suites=led.suites.catalogue,
        rows=led.suites.rows,
        contents=led.uploads.datasets,
        load_rows=LoadRows(objects=led.uploads.objects),
    )


def _credit_rule(settings: SchedulerSettings) -> CreditRule:
    return CreditRule(
        min_shards=settings.min_dispatched_shards,
        max_shards=settings.max_dispatched_shards,
        seconds_ahead=settings.dispatch_seconds_ahead,
    )
