"""Joins the parts of keys: the APIs of projects, operators and gateways, and the removal of old keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.api_keys import Pepper
from services.common.grpc.server import Registration
from services.common.process import usable_caller_key
from services.scheduler.audit.postgres import PostgresAudit
from services.scheduler.keys.delete_old_keys import DeleteOldKeys
from services.scheduler.keys.grpc_api import SERVICE_NAMES, GrpcKeyApi
from services.scheduler.keys.manage_keys import ManageKeys
from services.scheduler.keys.postgres import PostgresKeys
from services.scheduler.postgres import Connections
from services.scheduler.projects.ports import ProjectUses
from services.scheduler.projects.wiring import make_projects
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyParts:
    apis: Mapping[str, Registration]
    cleanup: DeleteOldKeys


def make_keys(settings: SchedulerSettings, connections: Connections, project_uses: ProjectUses) -> KeyParts:
    keys, clock = PostgresKeys(session=connections.postgres), connections.clock
    manage = ManageKeys(keys=keys, pepper=Pepper(caller_key=usable_caller_key(settings.caller_key)))
    audit = PostgresAudit(session=connections.postgres)
    api = GrpcKeyApi(manage=manage, keys=keys, audit=audit, clock=clock)
    return KeyParts(
        apis={**dict.fromkeys(SERVICE_NAMES, api.register), **make_projects(connections, project_uses)},
        cleanup=DeleteOldKeys(keys=keys, clock=clock),
    )
