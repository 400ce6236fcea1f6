"""Batches of the OpenAI protocol: create, list, show and cancel."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from proctor.v1 import batch_service_pb2 as batch_pb2
from services.gateway.api.openai import BatchObject, BatchRequest, Page, RequestId, batch_object, page_of
from services.gateway.auth import Identity
from services.gateway.backends import Scheduler
from services.gateway.errors.http_problem import openai_problems
from services.gateway.http.parameters import Text
from services.gateway.paths import BATCHES

BatchId = Annotated[Text, Path(description='"batch_…"', max_length=255)]
PageSize = Annotated[int, Query(ge=1, le=100)]
After = Annotated[Text, Query(max_length=255, description="last_id of the previous page")]


class BatchApi:
    """The handlers and their backend."""

    def __init__(self, scheduler: Scheduler, identity: Identity) -> None:
        self._batches = scheduler.batches
        self._identity = identity

    def router(self) -> APIRouter:
        router = APIRouter(tags=["openai"])
        router.post(
            BATCHES, responses=openai_problems(400, 404, 409, 503), summary="Start a batch over a file"
        )(self.create)
        router.get(BATCHES, responses=openai_problems(400, 404, 503), summary="List batches, newest first")(
            self.list_batches
        )
        path = f"{BATCHES}/{{batch_id}}"
        router.get(path, responses=openai_problems(404, 503), summary="One batch")(self.get)
        router.post(
            f"{path}/cancel",
            responses=openai_problems(404, 409, 503),
            summary="Cancel a batch; its answers so far are written to its files",
        )(self.cancel)
        return router

    async def create(self, body: BatchRequest, request: Request, request_id: RequestId) -> BatchObject:
        expiry = body.output_expires_after
        order = batch_pb2.CreateBatchRequest(
            input_file_id=body.input_file_id,
            endpoint=body.endpoint,
            completion_window=body.completion_window,
            metadata=body.metadata,
            user=await self._identity.user(request),
            request_id=request_id,
            output_expires_after_seconds=expiry.seconds if expiry else None,
        )
        return batch_object((await self._batches.CreateBatch(order)).batch)

    async def list_batches(self, limit: PageSize = 20, after: After = "") -> Page[BatchObject]:
        request = batch_pb2.ListBatchesRequest(page_size=limit, after_batch_id=after)
        listed = await self._batches.ListBatches(request)
        return page_of([batch_object(batch) for batch in listed.batches], has_more=listed.has_more)

    async def get(self, batch_id: BatchId) -> BatchObject:
        return batch_object(
            (await self._batches.GetBatch(batch_pb2.GetBatchRequest(batch_id=batch_id))).batch
        )

    async def cancel(self, batch_id: BatchId) -> BatchObject:
        request = batch_pb2.CancelBatchRequest(batch_id=batch_id)
        return batch_object((await self._batches.CancelBatch(request)).batch)
