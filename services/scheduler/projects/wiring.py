"""Joins the parts of projects."""

from collections.abc import Mapping

from services.common.grpc.server import Registration
from services.scheduler.postgres import Connections
from services.scheduler.projects.grpc_api import SERVICE_NAME, GrpcProjectApi
from services.scheduler.projects.manage_projects import ManageProjects
from services.scheduler.projects.ports import ProjectUses
from services.scheduler.projects.postgres import PostgresProjects


def make_projects(connections: Connections, uses: ProjectUses) -> Mapping[str, Registration]:
    projects = PostgresProjects(session=connections.postgres)
    manage = ManageProjects(projects=projects, clock=connections.clock)
    api = GrpcProjectApi(manage=manage, projects=projects, uses=uses, clock=connections.clock)
    return {SERVICE_NAME: api.register}
