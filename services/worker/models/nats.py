"""Answers requests for the models of the pool over NATS."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import model_pb2, work_messages_pb2
from proctor.values import messaging
from proctor.values.providers.models import ModelInfo
from proctor.wire.values import MODEL
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.worker.models.list_engine_models import ListEngineModels, ModelListing

log = get_logger()
_UNKNOWN = "The models cannot be listed; the log of the pool's worker says why."


class NatsModelListAnswers:
    """The workers of a pool share a queue group, so that one of them answers."""

    def __init__(self, connection: Client, pool: str, lister: ListEngineModels) -> None:
        self._connection = connection
        self._pool = pool
        self._lister = lister

    async def answer(self) -> None:
        subject = messaging.model_list_subject(self._pool)
        subscription = await self._connection.subscribe(subject, queue=self._pool)
        async with asyncio.TaskGroup() as answers:
            async for request in subscription.messages:
                answers.create_task(self._answer(request), name="list models")

    async def _answer(self, request: Msg) -> None:
        try:
            listing = await self._lister.list_models()
        except Exception:  # an edge: a foreign server may answer anything, and work goes on
            log.exception("models cannot be listed")
            listing = ModelListing(problem=_UNKNOWN)
        response = listing_to_proto(listing, self._pool)
        response.has_key = self._lister.has_key
        with suppress(*TRANSIENT_NATS):  # the caller asks again
            await request.respond(response.SerializeToString())


def listing_to_proto(listing: ModelListing, pool: str) -> work_messages_pb2.ListPoolModelsResponse:
    models = [_model_to_proto(model, pool) for model in listing.models]
    return work_messages_pb2.ListPoolModelsResponse(models=models, problem=listing.problem)


def _model_to_proto(model: ModelInfo, pool: str) -> model_pb2.ModelInfo:
    return MODEL.to_proto(
        replace(
            model,
            pool=pool,
            context_tokens=_fitting(model.context_tokens, bits=31),
            size_bytes=_fitting(model.size_bytes, bits=63),
            memory_bytes=_fitting(model.memory_bytes, bits=63),
            quantization=model.quantization[:64] if model.quantization.isprintable() else "",
        )
    )


def _fitting(count: int | None, *, bits: int) -> int | None:
    """None for a count that does not fit the message."""
    return count if count is not None and count < 2**bits else None
