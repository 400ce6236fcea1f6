"""Lines of the files of batches, from the exports of results."""

from collections.abc import AsyncIterator

import grpc

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.values.run import RunId
from services.common.grpc.errors import remote_error
from services.scheduler.batches.stored_batch import MissingLines


class GrpcBatchLines:
    """A client of ExportService; failures are raised as `RemoteError`. The caller limits the time."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._exports = export_grpc.ExportServiceStub(channel)

    def output(self, run_id: RunId) -> AsyncIterator[bytes]:
        return self._pieces(
            export_pb2.ExportRunRequest(run_id=run_id, format=export_pb2.EXPORT_FORMAT_BATCH_OUTPUT)
        )

    def errors(self, run_id: RunId, missing: MissingLines) -> AsyncIterator[bytes]:
        return self._pieces(
            export_pb2.ExportRunRequest(
                run_id=run_id,
                format=export_pb2.EXPORT_FORMAT_BATCH_ERRORS,
                missing_code=missing.code,
                missing_message=missing.message,
            )
        )

    async def _pieces(self, request: export_pb2.ExportRunRequest) -> AsyncIterator[bytes]:
        call = self._exports.ExportRun(request)
        try:
            async for response in call:
                yield response.content
        except grpc.aio.AioRpcError as error:
            raise remote_error(error) from error
        finally:
            # A reader that stops early would leave results sending into a full window.
            call.cancel()
