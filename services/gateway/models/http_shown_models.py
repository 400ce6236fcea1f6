"""Models and who told of them, from their messages."""

from datetime import UTC

from google.protobuf.message import Message

from proctor.v1 import model_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.models.byte_text import byte_text
from services.gateway.models.http_model_bodies import (
    AdminModel,
    AdminModels,
    Capabilities,
    ModelShown,
    ModelsShown,
    SourceShown,
)


def models_shown(listed: scheduler_pb2.ListModelsResponse) -> ModelsShown:
    return ModelsShown(
        models=[_model_shown(model) for model in listed.models],
        sources=[_source_shown(source) for source in listed.sources],
    )


def admin_models(listed: scheduler_pb2.ListModelsResponse) -> AdminModels:
    shown = models_shown(listed)
    return AdminModels(models=[_admin_model(model) for model in shown.models], sources=shown.sources)


def _model_shown(model: model_pb2.ModelInfo) -> ModelShown:
    provider, _, name = model.model.partition("/")
    return ModelShown(
        model=model.model,
        provider=provider,
        name=name,
        pool=model.pool,
        loaded=model.is_loaded,
        context_length=_count(model, "context_tokens"),
        size_bytes=_count(model, "size_bytes"),
        memory_bytes=_count(model, "memory_bytes"),
        quantization=model.quantization or None,
        capabilities=_capabilities(model.capabilities) if model.HasField("capabilities") else None,
        problem=model.problem or None,
    )


def _admin_model(model: ModelShown) -> AdminModel:
    return AdminModel(
        id=model.model,
        name=model.name,
        provider=model.provider,
        pool=model.pool,
        size=model.size_bytes,
        size_text=_text(model.size_bytes),
        memory_needed=model.memory_bytes,
        memory_needed_text=_text(model.memory_bytes),
        loaded=model.loaded,
        quantization=model.quantization,
        context_length=model.context_length,
        problem=model.problem,
    )


def _source_shown(source: scheduler_pb2.ModelSource) -> SourceShown:
    return SourceShown(
        pool=source.pool,
        provider=source.provider,
        engine=source.engine,
        problem=source.problem or None,
        listed_at=source.listed_at.ToDatetime(tzinfo=UTC) if source.HasField("listed_at") else None,
    )


def _capabilities(can: model_pb2.ModelCapabilities) -> Capabilities:
    return Capabilities(
        chat=can.chat,
        completion=can.completion,
        loglikelihood=can.loglikelihood,
        constrained=can.constrained,
        seed=can.seed,
        logprobs=can.logprobs,
        images=can.images,
    )


def _count(message: Message, field: str) -> int | None:
    return int(getattr(message, field)) if message.HasField(field) else None


def _text(count: int | None) -> str | None:
    return None if count is None else byte_text(count)
