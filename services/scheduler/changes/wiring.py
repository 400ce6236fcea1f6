"""Joins the parts of changes."""

from services.scheduler.changes.grpc_api import GrpcChangeApi
from services.scheduler.changes.postgres import PostgresChanges
from services.scheduler.postgres import Connections


def make_change_api(connections: Connections) -> GrpcChangeApi:
    return GrpcChangeApi(changes=PostgresChanges(connections.postgres))
