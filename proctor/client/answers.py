"""Stored answers of a run: under another scoring, or as a file."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from proctor.client.gateway_calls import GatewayCalls
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc

if TYPE_CHECKING:
    from proctor.v1.export_service_pb2_grpc import ExportServiceAsyncStub
    from proctor.v1.rescore_service_pb2_grpc import RescoreServiceAsyncStub

# A whole run is scored again: longer than looking something up.
_RESCORE_SECONDS = 300.0


class AnswerClient:
    """`client.answers`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._rescoring: RescoreServiceAsyncStub = rescore_grpc.RescoreServiceStub(calls.channel)
        self._exports: ExportServiceAsyncStub = export_grpc.ExportServiceStub(calls.channel)

    async def rescore(self, request: rescore_pb2.RescoreTaskRequest) -> rescore_pb2.RescoreTaskResponse:
        return await self._calls.call(self._rescoring.RescoreTask, request, _RESCORE_SECONDS)

    def export(self, request: export_pb2.ExportRunRequest) -> AsyncGenerator[export_pb2.ExportRunResponse]:
        """Pieces of the file; the first one has its name. A file is whole only when the last piece came."""
        return self._calls.stream(self._exports.ExportRun, request)
