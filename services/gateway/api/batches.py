"""Batches of the OpenAI protocol: create, list, show and cancel."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from proctor.v1 import batch_service_pb2 as batch_pb2
from services.gateway.api.openai import (
    BatchObject,
    BatchRequest,
    OpenAiPage,
    batch_object,
    page_of,
)
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import Text
from services.gateway.http.paths import BATCHES
from services.gateway.http.problem import openai_problems

BatchIdPath = Annotated[Text, Path(description='"batch_…"', max_length=255)]
BatchPageSize = Annotated[int, Query(ge=1, le=100)]
After = Annotated[Text, Query(max_length=255, description="last_id of the previous page")]


router = APIRouter(tags=["openai"])


@router.post(BATCHES, responses=openai_problems(400, 404, 409, 503), summary="Start a batch over a file")
async def create(
    scheduler: SchedulerCalls, user: User, body: BatchRequest, request_id: RequestId
) -> BatchObject:
    expiry = body.output_expires_after
    order = batch_pb2.CreateBatchRequest(
        input_file_id=body.input_file_id,
        endpoint=body.endpoint,
        completion_window=body.completion_window,
        metadata=body.metadata,
        user=user,
        request_id=request_id,
        output_expires_after_seconds=expiry.seconds if expiry else None,
    )
    return batch_object(BatchObject, (await scheduler.batches.CreateBatch(order)).batch)


@router.get(BATCHES, responses=openai_problems(400, 404, 503), summary="List batches, newest first")
async def list_batches(
    scheduler: SchedulerCalls, limit: BatchPageSize = 20, after: After = ""
) -> OpenAiPage[BatchObject]:
    request = batch_pb2.ListBatchesRequest(page_size=limit, after_batch_id=after)
    listed = await scheduler.batches.ListBatches(request)
    return page_of([batch_object(BatchObject, batch) for batch in listed.batches], has_more=listed.has_more)


@router.get(f"{BATCHES}/{{batch_id}}", responses=openai_problems(404, 503), summary="One batch")
async def get(scheduler: SchedulerCalls, batch_id: BatchIdPath) -> BatchObject:
    request = batch_pb2.GetBatchRequest(batch_id=batch_id)
    return batch_object(BatchObject, (await scheduler.batches.GetBatch(request)).batch)


@router.post(
    f"{BATCHES}/{{batch_id}}/cancel",
    responses=openai_problems(404, 409, 503),
    summary="Cancel a batch; its answers so far are written to its files",
)
async def cancel(scheduler: SchedulerCalls, batch_id: BatchIdPath) -> BatchObject:
    request = batch_pb2.CancelBatchRequest(batch_id=batch_id)
    return batch_object(BatchObject, (await scheduler.batches.CancelBatch(request)).batch)
