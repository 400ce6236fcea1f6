"""Joins the parts of scaling: what the leader computes, and what every replica answers."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.postgres import Connections
from services.scheduler.progress.wiring import ProgressParts
from services.scheduler.runs.wiring import RunParts
from services.scheduler.scaling.grpc_api import SERVICE_NAME, GrpcExternalScaler
from services.scheduler.scaling.kubernetes import KubernetesPodCosts
from services.scheduler.scaling.plan_workers import PlanWorkers
from services.scheduler.scaling.pool_demand import ScalingRule
from services.scheduler.scaling.postgres import PostgresDemands
from services.scheduler.scaling.set_deletion_costs import SetDeletionCosts
from services.scheduler.scaling.show_demand import ShowDemand
from services.scheduler.settings import SchedulerSettings
from services.scheduler.workers.wiring import WorkerParts


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingParts:
    apis: Mapping[str, Registration]
    show: ShowDemand
    leader: PlanWorkers
    # None: pods have no deletion costs.
    deletion_costs: SetDeletionCosts | None

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        loops: dict[str, Coroutine[None, None, None]] = {"scale pools": self.leader.lead(token)}
        if self.deletion_costs:
            loops["set deletion costs"] = self.deletion_costs.lead()
        return loops


def make_scaling(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    runs: RunParts,
    progress: ProgressParts,
    workers: WorkerParts,
) -> ScalingParts:
    clock, store = connections.clock, PostgresDemands(session=connections.postgres)
    pools = workers.pools.pools
    show = ShowDemand(pools=pools, store=store, clock=clock)
    leader = PlanWorkers(
        pools=pools,
        registry=workers.registry,
        tracker=progress.tracker,
        forecasts=runs.reads.show_run.forecasts,
        store=store,
        clock=clock,
        rule=ScalingRule(
            backlog_seconds=settings.scale_backlog_seconds, load_seconds=settings.scale_load_seconds
        ),
    )
    deletion_costs = SetDeletionCosts(
        pools=pools,
        registry=workers.registry,
        store=store,
        costs=KubernetesPodCosts(url=settings.kubernetes_url),
    )
    return ScalingParts(
        deletion_costs=deletion_costs if settings.set_deletion_costs else None,
        apis={SERVICE_NAME: GrpcExternalScaler(demand=show).register},
        show=show,
        leader=leader,
    )
