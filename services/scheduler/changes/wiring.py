"""Joins the parts of changes."""

from services.scheduler.changes.delete_old_changes import DeleteOldChanges
from services.scheduler.changes.grpc_api import GrpcChangeApi
from services.scheduler.changes.postgres import PostgresChanges
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings


def make_change_api(connections: Connections) -> GrpcChangeApi:
    return GrpcChangeApi(changes=PostgresChanges(connections.postgres))


def make_change_cleanup(settings: SchedulerSettings, connections: Connections) -> DeleteOldChanges:
    return DeleteOldChanges(
        changes=PostgresChanges(connections.postgres),
        clock=connections.clock,
        days=settings.keep_changes_days,
        most=settings.max_changes,
    )
