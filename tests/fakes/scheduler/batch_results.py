"""Fake of results for batches: writes the lines that a test sets. Every other call is unavailable."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from services.common.errors import ErrorKind, RemoteError
from services.common.grpc.server import serve_grpc

SERVICE_NAME = export_pb2.DESCRIPTOR.services_by_name["ExportService"].full_name


@dataclass
class RecordedRun:
    """Pieces of the two files."""

    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)


@dataclass
class BatchResults(export_grpc.ExportServiceServicer):
    """`failures`: so many calls fail in the middle. None gets behind its first before `gate` is set."""

    runs: dict[str, RecordedRun] = field(default_factory=dict)
    asked: list[export_pb2.ExportRunRequest] = field(default_factory=list)
    failures: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def ExportRun(
        self, request: export_pb2.ExportRunRequest, context: Any
    ) -> AsyncIterator[export_pb2.ExportRunResponse]:
        self.asked.append(request)
        if request.run_id not in self.runs:
            raise RemoteError(ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", "no such run", {})
        run = self.runs[request.run_id]
        is_output = request.format == export_pb2.EXPORT_FORMAT_BATCH_OUTPUT
        for piece in run.output if is_output else run.errors:
            yield export_pb2.ExportRunResponse(content=piece)
            await self.gate.wait()
            if self.failures:
                self.failures -= 1
                raise RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "gone in the middle", {})

    async def ExportGoldenAnswers(
        self, request: export_pb2.ExportGoldenAnswersRequest, context: Any
    ) -> AsyncIterator[export_pb2.ExportGoldenAnswersResponse]:
        raise RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "away", {})
        yield export_pb2.ExportGoldenAnswersResponse()

    def register(self, server: grpc.aio.Server) -> None:
        export_grpc.add_ExportServiceServicer_to_server(self, server)
        server.add_generic_rpc_handlers((_Away(),))


class _Away(grpc.GenericRpcHandler):
    """No run is planned or closed by anybody: tests say in what state it is."""

    def service(self, handler_call_details: Any) -> Any:  # the library's own signature
        if "RunRecordService" not in handler_call_details.method:
            return None
        return grpc.unary_unary_rpc_method_handler(_away)


async def _away(_: object, __: object) -> bytes:
    raise RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "away", {})


@asynccontextmanager
async def batch_results(results: BatchResults) -> AsyncIterator[str]:
    """Its address."""
    server = await serve_grpc("127.0.0.1:0", [results.register], [SERVICE_NAME])
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.stop(0)
