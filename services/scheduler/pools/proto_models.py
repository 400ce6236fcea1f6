"""Models that can be examined and who told of them, on the wire."""

from google.protobuf.message import Message

from proctor.v1 import model_pb2, scheduler_service_pb2
from services.scheduler.pools.listed_model import ListedModel, ModelList, ModelSource
from services.scheduler.pools.model_names import Aliases
from services.scheduler.runs.proto_runs import time_to_proto


def model_from_proto(told: model_pb2.ModelInfo) -> ListedModel:
    return ListedModel(
        name=told.model,
        pool=told.pool,
        is_loaded=told.is_loaded,
        context_tokens=_count(told, "context_tokens"),
        size_bytes=_count(told, "size_bytes"),
        memory_bytes=_count(told, "memory_bytes"),
        quantization=told.quantization,
        capabilities=_capabilities(told.capabilities) if told.HasField("capabilities") else None,
        problem=told.problem,
    )


def list_to_proto(listed: ModelList, aliases: Aliases) -> scheduler_service_pb2.ListModelsResponse:
    providers = {source.provider for source in listed.sources}
    return scheduler_service_pb2.ListModelsResponse(
        models=[_model_to_proto(model) for model in listed.models],
        sources=[_source_to_proto(source) for source in listed.sources],
        aliases={alias: model for alias, model in aliases.items() if model.partition("/")[0] in providers},
    )


def _model_to_proto(model: ListedModel) -> model_pb2.ModelInfo:
    can = model.capabilities
    return model_pb2.ModelInfo(
        model=model.name,
        pool=model.pool,
        is_loaded=model.is_loaded,
        context_tokens=model.context_tokens,
        size_bytes=model.size_bytes,
        memory_bytes=model.memory_bytes,
        quantization=model.quantization,
        capabilities=None if can is None else model_pb2.ModelCapabilities(**dict.fromkeys(can, True)),
        problem=model.problem,
    )


def _source_to_proto(source: ModelSource) -> scheduler_service_pb2.ModelSource:
    return scheduler_service_pb2.ModelSource(
        pool=source.pool,
        provider=source.provider,
        engine=source.engine,
        problem=source.problem,
        listed_at=time_to_proto(source.listed_at),
    )


def _capabilities(told: model_pb2.ModelCapabilities) -> frozenset[str]:
    return frozenset(field.name for field, has in told.ListFields() if has)


def _count(message: Message, field: str) -> int | None:
    return int(getattr(message, field)) if message.HasField(field) else None
