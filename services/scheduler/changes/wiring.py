"""Joins the parts of changes: the API that lists them, and the removal of old ones."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.scheduler.changes.delete_old_changes import DeleteOldChanges
from services.scheduler.changes.grpc_api import SERVICE_NAME, GrpcChangeApi
from services.scheduler.changes.postgres import PostgresChanges
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeParts:
    apis: Mapping[str, Registration]
    cleanup: DeleteOldChanges


def make_changes(settings: SchedulerSettings, connections: Connections) -> ChangeParts:
    changes = PostgresChanges(session=connections.postgres)
    read_changes = PostgresChanges(session=connections.reads)
    cleanup = DeleteOldChanges(
        changes=changes,
        clock=connections.clock,
        days=settings.changes_retention_days,
        max_changes=settings.max_changes,
    )
    return ChangeParts(apis={SERVICE_NAME: GrpcChangeApi(changes=read_changes).register}, cleanup=cleanup)
