"""Bodies that come in over HTTP, with their ranges, and the order that they stand for."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.v1 import run_pb2

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

Temperature = Annotated[float | None, Field(ge=0, le=2, description="0 is greedy")]
TopP = Annotated[float | None, Field(ge=0, le=1)]
TopK = Annotated[int | None, Field(ge=0, le=100, description="0 means no limit")]
Count = Annotated[int | None, Field(ge=1, le=_INT32_MAX)]
Seed = Annotated[int | None, Field(ge=0, le=_INT64_MAX)]
Penalty = Annotated[float | None, Field(gt=0, description="1 is none")]

_PRIORITIES = {
    "high": run_pb2.PRIORITY_HIGH,
    "normal": run_pb2.PRIORITY_NORMAL,
    "low": run_pb2.PRIORITY_LOW,
}


class OllamaParams(BaseModel):
    """Parameters by the names of Ollama; those it does not list go to the provider unchanged."""

    model_config = ConfigDict(extra="allow")

    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    num_predict: Count = None
    num_ctx: Count = None
    seed: Seed = None
    repeat_penalty: Penalty = None

    def to_params(self) -> "Params":
        """The same under our own names."""
        own = {
            "num_predict": "max_tokens",
            "num_ctx": "context_tokens",
            "repeat_penalty": "repetition_penalty",
        }
        given = self.model_dump(exclude_none=True)
        return Params.model_validate({own.get(name, name): value for name, value in given.items()})


class Params(BaseModel):
    """Parameters of generation for any provider; those it does not list go to the provider unchanged."""

    model_config = ConfigDict(extra="allow")

    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    max_tokens: Count = None
    seed: Seed = None
    repetition_penalty: Penalty = None
    context_tokens: Count = None

    def to_proto(self) -> run_pb2.GenerationParams:
        known = self.model_dump(exclude_none=True, include=set(type(self).model_fields))
        params = run_pb2.GenerationParams(**known)
        if self.model_extra:
            params.provider_params.update(self.model_extra)
        return params


class ModelConfig(BaseModel):
    """The model to examine and, if wanted, how it is asked."""

    model_config = ConfigDict(extra="forbid")

    provider: str = Field(min_length=1, max_length=64, pattern=r"^[^/\s]+$", examples=["vllm"])
    model: str = Field(min_length=1, max_length=512, examples=["starter"])
    ollama_params: OllamaParams | None = None
    params: Params | None = None


class RunRequest(BaseModel):
    """An order: one model over one suite."""

    model_config = ConfigDict(extra="forbid")

    project_id: int = Field(ge=0, le=_INT64_MAX, description="Groups runs; a project is made on first use")
    suite: str = Field(min_length=1, max_length=128, examples=["starter"])
    config: ModelConfig
    tasks: list[str] = Field(default_factory=list, description="Tasks of the suite; empty means all")
    limit: Count = Field(default=None, description="First N rows of each task")
    num_fewshot: int | None = Field(default=None, ge=0, le=_INT32_MAX, description="Examples in each prompt")
    rollouts: int | None = Field(default=None, ge=1, le=100, description="Repetitions of each sample")
    priority: Literal["high", "normal", "low"] = "high"
    params: Params | None = Field(default=None, description="Parameters for any provider")

    @model_validator(mode="after")
    def one_set_of_params(self) -> "RunRequest":
        given = (self.params, self.config.params, self.config.ollama_params)
        if sum(params is not None for params in given) > 1:
            raise ValueError("give only one of params, config.params and config.ollama_params")
        return self

    def to_order(self) -> run_pb2.RunOrder:
        ollama = self.config.ollama_params
        params = ollama.to_params() if ollama else self.params or self.config.params
        return run_pb2.RunOrder(
            project_id=self.project_id,
            suite=self.suite,
            tasks=self.tasks,
            model=f"{self.config.provider}/{self.config.model}",
            limit=self.limit,
            num_fewshot=self.num_fewshot,
            rollouts=self.rollouts,
            priority=_PRIORITIES[self.priority],
            params=params.to_proto() if params else None,
        )
