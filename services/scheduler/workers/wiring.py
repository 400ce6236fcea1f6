"""Joins the parts of workers: the registry of live ones, and the models that they can serve."""

from collections.abc import Callable
from dataclasses import dataclass

from proctor.values.providers.pools_file import PoolsFile
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings
from services.scheduler.workers.list_models import ListingRules, ListModels
from services.scheduler.workers.nats import NatsModelListRequests, NatsWorkerRegistry
from services.scheduler.workers.report_workers import ReportWorkers

# Longer than a worker waits for its provider's list.
LIST_MODELS_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    pools: PoolsFile
    registry: NatsWorkerRegistry
    list_models: ListModels
    report_workers: ReportWorkers


def make_workers(
    settings: SchedulerSettings, connections: Connections, *, pools: PoolsFile, changed: Callable[[], None]
) -> WorkerParts:
    """`changed` is called when a worker comes, goes or reports something new."""
    jetstream, clock = connections.jetstream, connections.clock
    buckets = {
        pool.name: Bucket(jetstream=jetstream, spec=streams.heartbeat_bucket(pool.name))
        for pool in pools.pools
    }
    registry = NatsWorkerRegistry(buckets=buckets, clock=clock, changed=changed)
    list_models = ListModels(
        pools=pools.pools,
        registry=registry,
        lists=NatsModelListRequests(
            connection=jetstream.connection, clock=clock, limit_seconds=LIST_MODELS_SECONDS
        ),
        clock=clock,
        rules=ListingRules(wait_seconds=settings.list_models_wait_seconds),
    )
    return WorkerParts(
        pools=pools,
        registry=registry,
        list_models=list_models,
        report_workers=ReportWorkers(pools=pools.pools, registry=registry),
    )
