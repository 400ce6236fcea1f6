"""ChangeService: converts, reads, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import change_service_pb2
from proctor.v1 import change_service_pb2_grpc as change_grpc
from services.common.checked_fields import checked_text
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import number_token, read_number_token
from services.common.requests.request_fields import checked_page_size
from services.scheduler.changes.ports import ChangeList
from services.scheduler.changes.proto import change_to_proto

SERVICE_NAME = change_service_pb2.DESCRIPTOR.services_by_name["ChangeService"].full_name
_LIST = "changes"


@dataclass(frozen=True, kw_only=True)
class GrpcChangeApi(change_grpc.ChangeServiceServicer):
    """`ChangeService` over gRPC."""

    changes: ChangeList

    def register(self, server: grpc.aio.Server) -> None:
        change_grpc.add_ChangeServiceServicer_to_server(self, server)

    async def ListChanges(
        self, request: change_service_pb2.ListChangesRequest, context: RpcContext
    ) -> change_service_pb2.ListChangesResponse:
        checked_text("object_id", request.object_id)
        size = checked_page_size(request.page_size)
        before = read_number_token(_LIST, request.page_token)
        page = await self.changes.page(size, before, object_id=request.object_id or None)
        return change_service_pb2.ListChangesResponse(
            changes=[change_to_proto(change) for change in page.changes],
            next_page_token="" if page.last is None else number_token(_LIST, page.last),
        )
