"""ChangeService and AuditService: converts, reads, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass
from datetime import UTC, datetime

import grpc

from proctor.v1 import audit_service_pb2, change_service_pb2
from proctor.v1 import audit_service_pb2_grpc as audit_grpc
from proctor.v1 import change_service_pb2_grpc as change_grpc
from services.common.checked_fields import checked_choice, checked_text, invalid_field
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import number_token, read_number_token
from services.common.requests.request_fields import checked_page_size
from services.scheduler.audit.audit_record import AuditFilter, Outcome
from services.scheduler.audit.ports import AuditStore, ChangeList
from services.scheduler.audit.proto import RECORD, change_to_proto

SERVICE_NAMES = (
    change_service_pb2.DESCRIPTOR.services_by_name["ChangeService"].full_name,
    audit_service_pb2.DESCRIPTOR.services_by_name["AuditService"].full_name,
)
_CHANGES, _RECORDS = "changes", "audit"


@dataclass(frozen=True, kw_only=True)
class GrpcAuditApi(change_grpc.ChangeServiceServicer, audit_grpc.AuditServiceServicer):
    """`ChangeService` for all users, and `AuditService` for operators."""

    changes: ChangeList
    audit: AuditStore

    def register(self, server: grpc.aio.Server) -> None:
        change_grpc.add_ChangeServiceServicer_to_server(self, server)
        audit_grpc.add_AuditServiceServicer_to_server(self, server)

    async def ListChanges(
        self, request: change_service_pb2.ListChangesRequest, context: RpcContext
    ) -> change_service_pb2.ListChangesResponse:
        checked_text("object_id", request.object_id)
        size = checked_page_size(request.page_size)
        before = read_number_token(_CHANGES, request.page_token)
        page = await self.changes.page(size, before, object_id=request.object_id or None)
        return change_service_pb2.ListChangesResponse(
            changes=[change_to_proto(change) for change in page.changes],
            next_page_token="" if page.last is None else number_token(_CHANGES, page.last),
        )

    async def ListAuditRecords(
        self, request: audit_service_pb2.ListAuditRecordsRequest, context: RpcContext
    ) -> audit_service_pb2.ListAuditRecordsResponse:
        size = checked_page_size(request.page_size)
        before = read_number_token(_RECORDS, request.page_token)
        page = await self.audit.records(_filter(request), size, before)
        return audit_service_pb2.ListAuditRecordsResponse(
            records=[RECORD.to_proto(record) for record in page.records],
            next_page_token="" if page.last is None else number_token(_RECORDS, page.last),
        )


def _filter(request: audit_service_pb2.ListAuditRecordsRequest) -> AuditFilter:
    """Raises InvalidParameter."""
    return AuditFilter(
        user=checked_text("user", request.user) or None,
        action=checked_text("action", request.action) or None,
        object_id=checked_text("object_id", request.object_id) or None,
        outcome=checked_choice("outcome", Outcome, request.outcome) if request.outcome else None,
        since=_since(request) if request.HasField("since") else None,
    )


def _since(request: audit_service_pb2.ListAuditRecordsRequest) -> datetime:
    try:
        return request.since.ToDatetime(UTC)
    except (ValueError, OverflowError) as error:
        raise invalid_field("since", "is no time") from error
