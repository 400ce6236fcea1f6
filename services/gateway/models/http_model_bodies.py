"""Models that can be examined, as they go out over HTTP: for programs, and in the form of the admin pages."""

from datetime import datetime

from pydantic import BaseModel, Field


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
