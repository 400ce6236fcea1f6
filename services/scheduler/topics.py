"""Connects the topics of the scheduler, from the lowest to the highest, and gathers what each one runs."""

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from proctor.values.providers.base_urls import BaseUrl
from proctor.values.providers.pools_file import PoolsFile
from services.common.clock import Clock
from services.common.grpc.server import Registration
from services.common.lifecycle import every
from services.scheduler.audit.wiring import AuditParts, make_audit
from services.scheduler.batches.postgres import refuse_used_file
from services.scheduler.batches.wiring import BatchParts, make_batches
from services.scheduler.disks.wiring import DiskParts, make_disks
from services.scheduler.dispatch.wiring import DispatchParts, make_dispatch
from services.scheduler.gates.wiring import GateParts, make_gates
from services.scheduler.imports.wiring import make_imports
from services.scheduler.keys.wiring import KeyParts, make_keys
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.limits.wiring import make_limits
from services.scheduler.notices.wiring import NoticeParts, make_notices
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.postgres import Connections
from services.scheduler.pricing.yaml_prices import YamlPrices
from services.scheduler.progress.wiring import ProgressParts, make_progress
from services.scheduler.rate_limits.wiring import RateLimitParts, make_rate_limits
from services.scheduler.rollouts.artifacts.postgres import STORAGE_QUERIES
from services.scheduler.rollouts.budgets.postgres import PostgresRolloutUse
from services.scheduler.rollouts.wiring import RolloutParts, make_artifact_deletion, make_rollouts
from services.scheduler.runs.archives.archive_old_runs import ArchiveOldRuns
from services.scheduler.runs.lifecycle.postgres import refuse_used_by_run
from services.scheduler.runs.lifecycle.postgres_projects import PostgresProjectUses
from services.scheduler.runs.wiring import RunParts, make_runs
from services.scheduler.scaling.wiring import ScalingParts, make_scaling
from services.scheduler.schedules.wiring import ScheduleParts, make_schedules
from services.scheduler.settings import SchedulerSettings
from services.scheduler.streams.wiring import StreamParts, make_streams
from services.scheduler.suites.wiring import SuiteParts, make_suites
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.wiring import UploadParts, make_uploads
from services.scheduler.workers.wiring import WorkerParts, make_workers
from services.scheduler.workers.yaml_pools import read_allowed_base_urls, read_pools

FORGET_SECONDS = 60.0
REPORT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """Files that operators write, read before anything is opened, since nothing works without them."""

    pools: PoolsFile
    allowed_base_urls: Sequence[BaseUrl]
    suites: YamlInstalledSuites
    prices: YamlPrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    settings: SchedulerSettings
    clock: Clock
    suites: SuiteParts
    uploads: UploadParts
    rate_limits: RateLimitParts
    progress: ProgressParts
    workers: WorkerParts
    streams: StreamParts
    audit: AuditParts
    keys: KeyParts
    notices: NoticeParts
    runs: RunParts
    dispatch: DispatchParts
    batches: BatchParts
    rollouts: RolloutParts
    scaling: ScalingParts
    gates: GateParts
    schedules: ScheduleParts
    imports: Mapping[str, Registration]

    def apis(self) -> Mapping[str, Registration]:
        """The APIs by the names of their services."""
        return {
            **self.runs.apis,
            **self.suites.apis,
            **self.uploads.apis,
            **self.batches.apis,
            **self.audit.apis,
            **self.keys.apis,
            **self.notices.apis,
            **self.scaling.apis,
            **self.rollouts.apis,
            **self.gates.apis,
            **self.schedules.apis,
            **self.imports,
        }

    def loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        """Loops of every scheduler, leader or not."""
        loops = {
            **self.streams.loops(),
            **self.runs.disks.loops(),
            **self.rollouts.loops(),
            "follow heartbeats": self.workers.registry.listen(),
            "forget idle runs": every(FORGET_SECONDS, self._forget_idle, name="forget idle runs"),
        }
        if self.settings.metrics_address:
            loops["report metrics"] = every(REPORT_SECONDS, self._report, name="report metrics")
        return loops

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        """Loops of the leader, for one term."""
        archive_old = ArchiveOldRuns(
            archives=self.runs.archives.archives,
            clock=self.clock,
            after_days=self.settings.archive_after_days,
            over_bytes=self.settings.archive_over_bytes,
        )
        return {
            **self.dispatch.leader_loops(token),
            **self.scaling.leader_loops(token),
            **self.notices.leader_loops(token),
            "assign quotas": self.rate_limits.assign_quotas.lead(),
            "finish batches": self.batches.leader.lead(token),
            **self.uploads.leader_loops(),
            **self.rollouts.leader_loops(),
            "delete rests of deleted runs": self.runs.delete.lead(),
            "move answers of archived runs": self.runs.archives.lead(),
            "archive old runs": archive_old.lead(),
            "delete old audit records": self.audit.cleanup.lead(),
            "delete old keys": self.keys.cleanup.lead(),
            **self.gates.leader_loops(token),
            **self.schedules.leader_loops(token),
        }

    async def _report(self) -> None:
        """Figures for the metrics."""
        self.workers.report_workers.report()
        await self.runs.report_queue.report()
        await self.scaling.show.report()

    async def _forget_idle(self) -> None:
        self.progress.tracker.forget_idle(self.clock.monotonic())
        self.rate_limits.tracker.forget_idle(self.clock.monotonic())
        await self.runs.limits.delete_request_counts(self.clock.now())


def read_definitions(settings: SchedulerSettings) -> Definitions:
    return Definitions(
        pools=read_pools(settings.pools_file),
        allowed_base_urls=read_allowed_base_urls(settings.allowed_base_urls),
        suites=YamlInstalledSuites(folder=settings.suites_dir),
        prices=YamlPrices(file=settings.prices_file),
    )


def make_topics(settings: SchedulerSettings, connections: Connections, definitions: Definitions) -> Topics:
    """Makes each topic of those before it."""
    limits, disks, suites, uploads = _make_stored(settings, connections, definitions.suites)
    progress = make_progress(settings, connections)
    rate_limits, workers = _make_working(settings, connections, definitions.pools, progress)
    runs = make_runs(
        connections,
        prices=definitions.prices,
        allowed_base_urls=definitions.allowed_base_urls,
        limits=limits,
        suites=suites,
        uploads=uploads,
        rate_limits=rate_limits,
        progress=progress,
        workers=workers,
        streams=(streams := make_streams(settings, connections, workers=workers)),
        disks=disks,
        record=GrpcRunRecord(channel=connections.results, max_failed_share=settings.max_failed_share),
        artifacts=make_artifact_deletion(connections, uploads.objects),
    )
    return Topics(
        settings=settings,
        clock=connections.clock,
        suites=suites,
        uploads=uploads,
        rate_limits=rate_limits,
        progress=progress,
        workers=workers,
        streams=streams,
        audit=make_audit(settings, connections),
        keys=make_keys(settings, connections, PostgresProjectUses(session=connections.postgres)),
        notices=make_notices(settings, connections),
        gates=make_gates(connections),
        runs=runs,
        dispatch=make_dispatch(
            settings,
            connections,
            runs=runs,
            suites=suites,
            uploads=uploads,
            progress=progress,
            workers=workers,
            rollout_use=PostgresRolloutUse(session=connections.postgres),
        ),
        batches=make_batches(settings, connections, runs=runs, uploads=uploads),
        rollouts=make_rollouts(settings, connections, suites=suites, uploads=uploads, runs=runs),
        scaling=make_scaling(settings, connections, runs=runs, progress=progress, workers=workers),
        schedules=make_schedules(connections, runs=runs),
        imports=make_imports(settings, connections, suites=suites, uploads=uploads, runs=runs),
    )


def _make_stored(
    settings: SchedulerSettings, connections: Connections, installed: YamlInstalledSuites
) -> tuple[PostgresLimits, DiskParts, SuiteParts, UploadParts]:
    """What users store, and what limits it."""
    limits, disks = make_limits(settings, connections), make_disks(settings, connections)
    quota = PostgresStorage(session=connections.postgres, limits=limits, queries=STORAGE_QUERIES)
    check_room = disks.watch.check_uploads
    suites = make_suites(
        settings,
        connections,
        installed=installed,
        check_storage=quota.check_suite,
        check_room=check_room,
    )
    uploads = make_uploads(
        settings,
        connections,
        refuse_used_dataset=refuse_used_by_run,
        refuse_used_file=refuse_used_file,
        storage=quota,
        check_room=check_room,
    )
    return limits, disks, suites, uploads


def _make_working(
    settings: SchedulerSettings, connections: Connections, pools: PoolsFile, progress: ProgressParts
) -> tuple[RateLimitParts, WorkerParts]:
    """Who answers, and how often it may ask."""
    workers = make_workers(settings, connections, pools=pools, changed=progress.touch_all)
    return make_rate_limits(settings, connections, pools=pools.pools), workers
