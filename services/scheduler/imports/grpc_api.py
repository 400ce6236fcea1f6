"""ImportService: converts, calls the use case, converts."""

# ruff: noqa: N802 - names and parameters are those of the generated service

from collections.abc import AsyncIterable
from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import import_service_pb2 as import_pb2
from proctor.v1 import import_service_pb2_grpc as import_grpc
from proctor.values.names.user import LOCAL_USER
from proctor.wire.convert import Codec
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.scheduler.imports.add_imported_run import AddImportedRun
from services.scheduler.imports.logged_run import ImportHeader
from services.scheduler.runs.reads.proto import LABELS, snapshot_to_proto
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.uploads.proto import open_upload

SERVICE_NAME = import_pb2.DESCRIPTOR.services_by_name["ImportService"].full_name
_HEADER = Codec(ImportHeader, import_pb2.ImportHeader, nested=(LABELS,))


@dataclass(frozen=True, kw_only=True)
class GrpcImportApi(import_grpc.ImportServiceServicer):
    add: AddImportedRun
    show_run: ShowRun

    def register(self, server: grpc.aio.Server) -> None:
        import_grpc.add_ImportServiceServicer_to_server(self, server)

    async def ImportRun(
        self, request_iterator: AsyncIterable[import_pb2.ImportRunRequest], context: RpcContext
    ) -> import_pb2.ImportRunResponse:
        first, contents = await open_upload(request_iterator)
        first.header.user = first.header.user or LOCAL_USER
        first.header.name = first.header.name or "log"
        first.header.request_id = first.header.request_id or str(uuid4())
        caller = caller_of(context.invocation_metadata())
        imported = await self.add.add(_HEADER.from_proto(first.header), contents, caller)
        shown = await self.show_run.show(imported.run_id)
        return import_pb2.ImportRunResponse(run=snapshot_to_proto(shown), notes=imported.notes)
