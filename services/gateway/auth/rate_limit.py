"""Counts each request of a user at the doors, in one place for all gateways; over the limit it is refused."""

from typing import TYPE_CHECKING

import grpc

from proctor.v1 import request_count_service_pb2 as count_pb2
from proctor.v1 import request_count_service_pb2_grpc as count_grpc
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends.calls import SCHEDULER, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.request_count_service_pb2_grpc import RequestCountServiceAsyncStub

log = get_logger()

_PATIENCE_SECONDS = 1.0


class RequestCounts:
    """The scheduler's, which all gateways share."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: RequestCountServiceAsyncStub = count_grpc.RequestCountServiceStub(channel)
        self._calls = BackendCalls(SCHEDULER, timeout_seconds=_PATIENCE_SECONDS)

    async def count(self, user: str) -> None:
        """Raises `TOO_MANY_REQUESTS`. Where nobody counts the request goes on: its own call will tell."""
        try:
            await self._calls.ask(self._stub.CountRequest, count_pb2.CountRequestRequest(user=user))
        except DomainError as error:
            if error.kind is ErrorKind.EXHAUSTED:
                raise
            log.info("request not counted", user=user, reason=error.reason)
