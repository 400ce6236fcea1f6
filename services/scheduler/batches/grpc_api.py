"""BatchService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import asdict, dataclass
from uuid import uuid4

import grpc

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import batch_service_pb2_grpc as batch_grpc
from proctor.values.names.user import LOCAL_USER
from proctor.wire.enums import number_of
from proctor.wire.values import USAGE
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import checked_page_size, checked_request_id
from services.scheduler.batches.cancel_batch import CancelBatch
from services.scheduler.batches.show_batch import BatchView, ShowBatch
from services.scheduler.batches.stored_batch import (
    BatchId,
    BatchNotFound,
    BatchOrder,
    errors_of,
    is_batch_id,
    line_counts,
    state_of,
    times_of,
)
from services.scheduler.batches.submit_batch import BatchSubmission, SubmitBatch
from services.scheduler.uploads.proto import file_id_from_proto

SERVICE_NAME = batch_pb2.DESCRIPTOR.services_by_name["BatchService"].full_name
DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 100


def batch_order_from_proto(request: batch_pb2.CreateBatchRequest) -> BatchOrder:
    has_expiry = request.HasField("output_expires_after_seconds")
    return BatchOrder(
        input_file_id=file_id_from_proto(request.input_file_id),
        endpoint=request.endpoint,
        completion_window=request.completion_window,
        metadata=dict(request.metadata),
        output_expires_after_seconds=request.output_expires_after_seconds if has_expiry else None,
    )


def batch_id_from_proto(text: str) -> BatchId:
    """Raises BatchNotFound for a text that is not an id."""
    if not is_batch_id(text):
        raise BatchNotFound(batch_id=text)
    return BatchId(text)


def batch_to_proto(shown: BatchView) -> batch_pb2.Batch:
    batch, run = shown.batch, shown.batch.run
    message = batch_pb2.Batch(
        batch_id=batch.batch_id,
        user=batch.user,
        input_file_id=batch.order.input_file_id,
        endpoint=batch.order.endpoint,
        completion_window=batch.order.completion_window,
        metadata=batch.order.metadata,
        state=number_of(state_of(batch)),
        errors=[batch_pb2.BatchError(**asdict(error)) for error in errors_of(batch)],
        run_id=run.run_id if run else "",
        model=run.order.model if run else "",
        output_file_id=(batch.files and batch.files.output_file_id) or "",
        error_file_id=(batch.files and batch.files.error_file_id) or "",
        project_id=batch.project_id,
        **asdict(line_counts(batch, shown.counts)),
    )
    if shown.counts:
        message.usage.SetInParent()
        USAGE.fill(message.usage, shown.counts.usage)
    for name, time in asdict(times_of(batch)).items():
        if time is not None:
            getattr(message, name).FromDatetime(time)
    return message


@dataclass(frozen=True, kw_only=True)
class GrpcBatchApi(batch_grpc.BatchServiceServicer):
    """Batches of the OpenAI protocol."""

    submit: SubmitBatch
    show_batch: ShowBatch
    cancel: CancelBatch

    def register(self, server: grpc.aio.Server) -> None:
        batch_grpc.add_BatchServiceServicer_to_server(self, server)

    async def CreateBatch(
        self, request: batch_pb2.CreateBatchRequest, context: RpcContext
    ) -> batch_pb2.CreateBatchResponse:
        submission = BatchSubmission(
            batch_id=BatchId(f"batch_{uuid4().hex}"),
            order=batch_order_from_proto(request),
            user=request.user or LOCAL_USER,
            request_id=checked_request_id(request.request_id),
        )
        shown = await self.show_batch.show_stored(await self.submit.submit(submission))
        return batch_pb2.CreateBatchResponse(batch=batch_to_proto(shown))

    async def GetBatch(
        self, request: batch_pb2.GetBatchRequest, context: RpcContext
    ) -> batch_pb2.GetBatchResponse:
        shown = await self.show_batch.show(batch_id_from_proto(request.batch_id))
        return batch_pb2.GetBatchResponse(batch=batch_to_proto(shown))

    async def ListBatches(
        self, request: batch_pb2.ListBatchesRequest, context: RpcContext
    ) -> batch_pb2.ListBatchesResponse:
        size = checked_page_size(request.page_size, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        after = batch_id_from_proto(request.after_batch_id) if request.after_batch_id else None
        page = await self.show_batch.list_page(size, after)
        return batch_pb2.ListBatchesResponse(
            batches=[batch_to_proto(shown) for shown in page.batches], has_more=page.has_more
        )

    async def CancelBatch(
        self, request: batch_pb2.CancelBatchRequest, context: RpcContext
    ) -> batch_pb2.CancelBatchResponse:
        caller = caller_of(context.invocation_metadata())
        batch = await self.cancel.cancel(batch_id_from_proto(request.batch_id), caller)
        return batch_pb2.CancelBatchResponse(batch=batch_to_proto(await self.show_batch.show_stored(batch)))
