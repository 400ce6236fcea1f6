"""How many bytes, for people.
Models that can be examined, as they go out over HTTP: for programs, and in the form of the admin pages.
Models and who told of them, from their messages.
"""

from datetime import UTC, datetime

from google.protobuf.message import Message
from pydantic import BaseModel, Field

from proctor.v1 import model_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def byte_text(count: int) -> str:
    """In the powers of a thousand by which files are sold and downloaded: 1.3 GB."""
    if count < 1000:
        return f"{count} bytes"
    value = float(count)
    for unit in _UNITS:
        value /= 1000
        if value < 999.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"


class Capabilities(BaseModel):
    """What a model can be asked for."""

    chat: bool
    completion: bool = Field(description="Continue a text as it is")
    loglikelihood: bool = Field(description="Weigh given continuations")
    constrained: bool = Field(description="Say nothing but one of given texts")
    seed: bool = Field(description="Repeat a draw")
    logprobs: bool = Field(description="Tell log-probabilities of what it generates")
    images: bool


class ModelShown(BaseModel):
    """What is null nobody told."""

    model: str = Field(description="provider/name, as an order names it")
    provider: str
    name: str
    pool: str
    loaded: bool
    context_length: int | None = Field(description="In tokens")
    size_bytes: int | None = Field(description="Of its weights")
    memory_bytes: int | None = Field(description="What serving it takes: weights and least cache")
    quantization: str | None
    capabilities: Capabilities | None
    problem: str | None = Field(description="Why it cannot be loaded")


class SourceShown(BaseModel):
    """A pool that was asked for its models."""

    pool: str
    provider: str
    engine: str
    problem: str | None = Field(description="Why its models, or some of them, are not told live")
    listed_at: datetime | None = Field(description="When its models were told; null when they were not")


class ModelsShown(BaseModel):
    models: list[ModelShown]
    sources: list[SourceShown]


class AdminModel(BaseModel):
    id: str = Field(description="provider/name")
    name: str
    provider: str
    pool: str
    size: int | None = Field(description="Bytes of its weights")
    size_text: str | None = Field(description='Such as "1.3 GB"')
    memory_needed: int | None = Field(description="Bytes that serving it takes")
    memory_needed_text: str | None
    loaded: bool
    quantization: str | None
    context_length: int | None
    problem: str | None


class AdminModels(BaseModel):
    models: list[AdminModel]
    sources: list[SourceShown]


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
