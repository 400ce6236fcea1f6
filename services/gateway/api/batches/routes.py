"""Batches of the OpenAI protocol over HTTP: start, look at, list, cancel."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from proctor.v1 import batch_service_pb2 as batch_pb2
from services.gateway.api.openai.idempotency import RequestId
from services.gateway.api.openai.schemas import BatchObject, BatchRequest, Page, batch_object
from services.gateway.auth.identity import Identity
from services.gateway.backends.scheduler import BatchBackend
from services.gateway.errors.openai_errors import openai_problems
from services.gateway.http.fields import Text
from services.gateway.paths import BATCHES

BatchId = Annotated[Text, Path(description='"batch_…"', max_length=255)]
PageSize = Annotated[int, Query(ge=1, le=100)]
After = Annotated[Text, Query(max_length=255, description="last_id of the page before")]


class BatchApi:
    """The handlers, with what they ask."""

    def __init__(self, batches: BatchBackend, identity: Identity) -> None:
        self._batches = batches
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
            summary="Cancel a batch; what was answered is written to its files",
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
        return batch_object(await self._batches.create(order))

    async def list_batches(self, limit: PageSize = 20, after: After = "") -> Page[BatchObject]:
        listed = await self._batches.list_page(limit, after)
        batches = [batch_object(batch) for batch in listed.batches]
        return Page(
            data=batches,
            first_id=batches[0].id if batches else None,
            last_id=batches[-1].id if batches else None,
            has_more=listed.has_more,
        )

    async def get(self, batch_id: BatchId) -> BatchObject:
        return batch_object(await self._batches.get(batch_id))

    async def cancel(self, batch_id: BatchId) -> BatchObject:
        return batch_object(await self._batches.cancel(batch_id))
