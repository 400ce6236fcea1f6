"""Joins the parts of the audit: the APIs that list records and changes, and the removal of old ones."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.scheduler.audit.delete_old_records import DeleteOldRecords
from services.scheduler.audit.grpc_api import SERVICE_NAMES, GrpcAuditApi
from services.scheduler.audit.postgres import PostgresAudit
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditParts:
    apis: Mapping[str, Registration]
    cleanup: DeleteOldRecords


def make_audit(settings: SchedulerSettings, connections: Connections) -> AuditParts:
    audit = PostgresAudit(session=connections.postgres)
    read_audit = PostgresAudit(session=connections.reads)
    cleanup = DeleteOldRecords(
        records=audit,
        clock=connections.clock,
        days=settings.audit_retention_days,
        max_records=settings.max_audit_records,
    )
    api = GrpcAuditApi(changes=read_audit, audit=read_audit)
    return AuditParts(apis=dict.fromkeys(SERVICE_NAMES, api.register), cleanup=cleanup)
