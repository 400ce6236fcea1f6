"""Answers who asks for the models of the pool, for as long as the worker lives."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict

from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import model_pb2, work_messages_pb2
from services.common import subjects
from services.common.jetstream import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.worker.engines.engine import ModelInfo
from services.worker.models.list_models import ModelLister, ModelListing

log = get_logger()

_UNKNOWN = "The models cannot be told; the log of the pool's worker says why."
_LARGEST_COUNT = {"context_tokens": 2**31 - 1, "size_bytes": 2**63 - 1, "memory_bytes": 2**63 - 1}


class NatsModelLists:
    """The workers of a pool share a queue group, so that one of them answers."""

    def __init__(self, connection: Client, pool: str, lister: ModelLister) -> None:
        self._connection = connection
        self._pool = pool
        self._lister = lister

    async def answer(self) -> None:
        subject = subjects.model_list_subject(self._pool)
        subscription = await self._connection.subscribe(subject, queue=self._pool)
        async with asyncio.TaskGroup() as answers:
            async for request in subscription.messages:
                answers.create_task(self._answer(request), name="list models")

    async def _answer(self, request: Msg) -> None:
        try:
            listing = await self._lister.list_models()
        except Exception:  # an edge: what a foreign server told may surprise, and work goes on
            log.exception("models cannot be listed")
            listing = ModelListing(problem=_UNKNOWN)
        with suppress(*TRANSIENT_NATS):  # who asked asks again
            await request.respond(listing_to_proto(listing, self._pool).SerializeToString())


def listing_to_proto(listing: ModelListing, pool: str) -> work_messages_pb2.ListPoolModelsResponse:
    models = [_model_to_proto(model, pool) for model in listing.models]
    return work_messages_pb2.ListPoolModelsResponse(models=models, problem=listing.problem)


def _model_to_proto(model: ModelInfo, pool: str) -> model_pb2.ModelInfo:
    """A count that no message holds is none."""
    counts = {
        "context_tokens": model.context_length,
        "size_bytes": model.size_bytes,
        "memory_bytes": model.memory_bytes,
    }
    told = {
        name: count for name, count in counts.items() if count is not None and count <= _LARGEST_COUNT[name]
    }
    return model_pb2.ModelInfo(
        model=model.name,
        pool=pool,
        is_loaded=model.is_loaded,
        quantization=model.quantization[:64] if model.quantization.isprintable() else "",
        capabilities=model_pb2.ModelCapabilities(**asdict(model.capabilities)),
        problem=model.problem,
        **told,
    )
