"""ChangeService: converts, reads, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import change_service_pb2 as messages
from proctor.v1 import change_service_pb2_grpc
from services.common.grpc.server import RpcContext
from services.scheduler.changes.proto import change_to_proto
from services.scheduler.changes.user_change import ChangeList
from services.scheduler.errors import InvalidPageToken
from services.scheduler.requests import checked_page_size, nul_problem, refuse

SERVICE_NAME = messages.DESCRIPTOR.services_by_name["ChangeService"].full_name
_MOST_DIGITS = 18


@dataclass(frozen=True, kw_only=True)
class GrpcChangeApi(change_service_pb2_grpc.ChangeServiceServicer):
    """Who changed what."""

    changes: ChangeList

    def register(self, server: grpc.aio.Server) -> None:
        change_service_pb2_grpc.add_ChangeServiceServicer_to_server(self, server)

    async def ListChanges(
        self, request: messages.ListChangesRequest, context: RpcContext
    ) -> messages.ListChangesResponse:
        refuse(nul_problem("object_id", request.object_id))
        size = checked_page_size(request.page_size)
        before, object_id = _number(request.page_token), request.object_id or None
        page = await self.changes.page(size, before, object_id=object_id)
        return messages.ListChangesResponse(
            changes=[change_to_proto(change) for change in page.changes],
            next_page_token="" if page.last is None else str(page.last),
        )


def _number(token: str) -> int | None:
    """None for the first page. Raises `InvalidPageToken`."""
    if not token:
        return None
    if not (token.isascii() and token.isdecimal() and len(token) <= _MOST_DIGITS):
        raise InvalidPageToken(page_token=token)
    return int(token)
