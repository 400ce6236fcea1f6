"""Models that can be evaluated: for programs, for the admin pages, and in the form of the OpenAI protocol."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from proctor.v1 import model_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1.scheduler_service_pb2 import ListModelsRequest
from proctor.values.names.model_name import name_of, provider_of, split_model
from services.gateway.api.openai import ModelObject, ModelObjects
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.http.errors import AmbiguousModel, ModelNotFound
from services.gateway.http.parameters import Text
from services.gateway.http.paths import ADMIN, MODELS, OPENAI_MODELS
from services.gateway.http.presentation import present
from services.gateway.http.problem import openai_problems, problems

_UNITS = ("kB", "MB", "GB", "TB", "PB")
ProviderQuery = Annotated[
    str, Query(max_length=128, description="Only this one; it has to be a provider of a pool")
]

router = APIRouter(tags=["models"])

openai_router = APIRouter(tags=["openai"])


async def full_model(scheduler: Scheduler, name: str) -> str:
    """The model of earlier runs that a name means, with its provider or without. Raises AmbiguousModel."""
    return model_of(name, await models_named(scheduler, name)) if name else ""


async def models_named(scheduler: Scheduler, name: str) -> Sequence[str]:
    """Models of earlier runs that have the name, with its provider or without; for "" the first 1,000."""
    return (await scheduler.runs.ListModelNames(scheduler_pb2.ListModelNamesRequest(model=name))).models


def model_of(name: str, named: Sequence[str]) -> str:
    """The one of the models `named` so that a name means; the name itself where there is none."""
    if name in named or not named:
        return name
    if len(named) > 1:
        raise AmbiguousModel(model=name, candidates=", ".join(named))
    return named[0]


def provider_and_name(model: str) -> dict[str, str]:
    """A model as it was ordered, as fields of a body."""
    return {"provider": provider_of(model), "model_name": name_of(model)}


def names_of(models: Iterable[str]) -> dict[str, str]:
    """The names as they were ordered; with the provider where several of these models have the name."""
    names = {model: name_of(model) for model in models}
    counts = Counter(names.values())
    return {model: name if counts[name] == 1 else model for model, name in names.items()}


class Capabilities(BaseModel):
    """Request types that a model supports."""

    chat: bool
    completion: bool = Field(description="Text completions")
    loglikelihood: bool = Field(description="Log-likelihoods of given continuations")
    constrained: bool = Field(description="Decoding constrained to given texts")
    seed: bool = Field(description="Reproducible sampling")
    logprobs: bool = Field(description="Log-probabilities of generated tokens")
    images: bool


class PriceShown(BaseModel):
    """Of a million tokens each."""

    input_per_million: float
    output_per_million: float
    currency: str


class ModelShown(BaseModel):
    """Null means unknown."""

    model: str = Field(description="provider/name, as in an order")
    provider: str
    name: str
    pool: str
    loaded: bool
    context_tokens: int | None = Field(description="Longest context")
    size_bytes: int | None = Field(description="Size of its weights")
    memory_bytes: int | None = Field(description="Memory needed to serve it: weights and minimal cache")
    quantization: str | None
    capabilities: Capabilities | None
    problem: str | None = Field(description="Why it cannot be loaded")
    price: PriceShown | None = None
    created_at: datetime | None = Field(description="When it was made, or its weights were written")


class SourceShown(BaseModel):
    """A pool that was asked for its models."""

    pool: str
    provider: str
    engine: str
    problem: str | None = Field(description="Why its models, or some of them, could not be listed")
    listed_at: datetime | None = Field(description="When its models were listed; null when they were not")


class ModelsShown(BaseModel):
    models: list[ModelShown]
    sources: list[SourceShown]


class AdminModel(BaseModel):
    id: str = Field(description="provider/name")
    name: str
    provider: str
    pool: str
    size: int | None = Field(description="Bytes of its weights")
    size_text: str | None = Field(description='For example "1.3 GB"')
    memory_needed: int | None = Field(description="Bytes needed to serve it")
    memory_needed_text: str | None
    loaded: bool
    quantization: str | None
    context_tokens: int | None
    problem: str | None


class AdminModels(BaseModel):
    models: list[AdminModel]
    sources: list[SourceShown]


@router.get(
    MODELS,
    responses=problems(400, 422, 503),
    summary="List models live, and the pools that could not be listed",
)
async def list_models(scheduler: SchedulerCalls, provider: ProviderQuery = "") -> ModelsShown:
    request = scheduler_pb2.ListModelsRequest(provider=provider)
    listed = await scheduler.runs.ListModels(request)
    return present(ModelsShown, listed, models=models_shown(listed))


@router.get(f"{ADMIN}/models", responses=problems(503), summary="List models with size and memory needed")
async def list_admin_models(scheduler: SchedulerCalls) -> AdminModels:
    shown = await list_models(scheduler)
    return AdminModels(models=[_admin_model(model) for model in shown.models], sources=shown.sources)


def byte_text(count: int) -> str:
    """Bytes for people, in powers of a thousand: 1.3 GB."""
    if count < 1000:
        return f"{count} bytes"
    value = float(count)
    for unit in _UNITS:
        value /= 1000
        if value < 999.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"


def models_shown(listed: scheduler_pb2.ListModelsResponse) -> list[ModelShown]:
    return [_model_shown(model, listed.prices.get(model.model)) for model in listed.models]


def _model_shown(model: model_pb2.ModelInfo, price: run_pb2.ModelPrice | None) -> ModelShown:
    provider, name = split_model(model.model)
    shown = present(PriceShown, price) if price else None
    return present(ModelShown, model, provider=provider, name=name, loaded=model.is_loaded, price=shown)


def _admin_model(model: ModelShown) -> AdminModel:
    return AdminModel(
        **model.model_dump(include=set(AdminModel.model_fields)),
        id=model.model,
        size=model.size_bytes,
        size_text=_text(model.size_bytes),
        memory_needed=model.memory_bytes,
        memory_needed_text=_text(model.memory_bytes),
    )


def _text(count: int | None) -> str | None:
    return None if count is None else byte_text(count)


async def _openai_models(scheduler: SchedulerCalls) -> list[ModelObject]:
    """Loadable models and their aliases. Several pools may serve one model."""
    listed = await scheduler.runs.ListModels(ListModelsRequest())
    broken = {model.model for model in listed.models if model.problem}
    created = {model.model: model.created_at.seconds for model in listed.models}
    named = {model: model for model in created} | dict(sorted(listed.aliases.items()))
    return [
        ModelObject(id=name, created=created.get(model, 0), owned_by=provider_of(model))
        for name, model in named.items()
        if model not in broken
    ]


OpenAIModels = Annotated[list[ModelObject], Depends(_openai_models)]


@openai_router.get(OPENAI_MODELS, responses=openai_problems(503), summary="List models live")
async def list_openai_models(models: OpenAIModels) -> ModelObjects:
    return ModelObjects(data=models)


# Names of models contain slashes.
@openai_router.get(
    f"{OPENAI_MODELS}/{{model:path}}", responses=openai_problems(404, 503), summary="One model"
)
async def get_openai_model(
    models: OpenAIModels, model: Annotated[Text, Path(description="provider/name, or an alias of one")]
) -> ModelObject:
    for listed in models:
        if listed.id == model:
            return listed
    raise ModelNotFound(model=model)
