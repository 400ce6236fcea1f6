"""Bodies that come in over HTTP, with their ranges, and the order that they stand for."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from google.protobuf.struct_pb2 import Struct
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.v1 import run_pb2
from services.gateway.http.fields import Text
from services.gateway.http.presentation import SCORING_METHODS

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
# Protobuf reads no message that is much deeper.
_MAX_NESTING = 16

Temperature = Annotated[float | None, Field(ge=0, le=2, description="0 is greedy")]
TopP = Annotated[float | None, Field(ge=0, le=1)]
TopK = Annotated[int | None, Field(ge=0, le=100, description="0 means no limit")]
Count = Annotated[int | None, Field(ge=1, le=_INT32_MAX)]
Seed = Annotated[int | None, Field(ge=0, le=_INT64_MAX)]
Penalty = Annotated[float | None, Field(gt=0, description="1 is none")]
ProjectId = Annotated[
    int, Field(ge=0, le=_INT64_MAX, description="Groups runs; a project is made on first use")
]
Rollouts = Annotated[int | None, Field(ge=1, le=100, description="Repetitions of each sample")]
Urgency = Literal["high", "normal", "low"]
PromptForm = Annotated[Literal["auto", "chat", "completion"], Field(description="How prompts are put")]
BaseUrl = Annotated[
    Text,
    Field(
        max_length=1024,
        description="A server of the OpenAI protocol to ask instead of the pool's own, without any key; "
        "an operator has to allow it",
    ),
]
MaxCost = Annotated[
    float | None,
    Field(
        gt=0,
        allow_inf_nan=False,
        description="The run stops when its tokens cost so much, in the currency of the price file",
    ),
]

PRIORITIES = {
    "high": run_pb2.PRIORITY_HIGH,
    "normal": run_pb2.PRIORITY_NORMAL,
    "low": run_pb2.PRIORITY_LOW,
}
_SCORING_METHODS = {**SCORING_METHODS, "auto": run_pb2.SCORING_METHOD_UNSPECIFIED}
PROMPT_FORMS = {
    "auto": run_pb2.PROMPT_FORM_UNSPECIFIED,
    "chat": run_pb2.PROMPT_FORM_CHAT,
    "completion": run_pb2.PROMPT_FORM_COMPLETION,
}
_TRUNCATIONS = {"none": run_pb2.TRUNCATION_NONE, "left": run_pb2.TRUNCATION_LEFT}


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

    @model_validator(mode="after")
    def others_can_be_sent(self) -> Self:
        others = self.model_extra or {}
        for name, listed in type(self).model_fields.items():
            if name in others:
                raise ValueError(f"{name} is called {listed.alias} here")
        provider_params(others)
        return self

    def to_proto(self) -> run_pb2.GenerationParams:
        known = self.model_dump(exclude_none=True, include=set(type(self).model_fields))
        others = provider_params(self.model_extra) if self.model_extra else None
        return run_pb2.GenerationParams(**known, provider_params=others)


class OllamaParams(Params):
    """Parameters by the names of Ollama; those it does not list go to the provider unchanged."""

    max_tokens: Count = Field(default=None, alias="num_predict")
    context_tokens: Count = Field(default=None, alias="num_ctx")
    repetition_penalty: Penalty = Field(default=None, alias="repeat_penalty")


def provider_params(given: Mapping[str, Any]) -> Struct:
    """Raises ValueError for what the wire cannot carry."""
    refuse_deep(given)
    params = Struct()
    for name, value in given.items():
        try:
            params.update({name: value})
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name!a} cannot be sent: {error}") from error
    return params


def refuse_deep(given: Mapping[str, Any]) -> None:
    """Raises ValueError for what is nested deeper than anybody reads."""
    if not _is_within(_MAX_NESTING, given):
        raise ValueError(f"parameters may be nested {_MAX_NESTING} levels deep, not deeper")


def _is_within(levels: int, value: object) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_within(levels - 1, each) for each in inner)


class ModelConfig(BaseModel):
    """The model to examine and, if wanted, how it is asked."""

    model_config = ConfigDict(extra="forbid")

    provider: str = Field(min_length=1, max_length=64, pattern=r"^[^/\s]+$", examples=["vllm"])
    model: Text = Field(min_length=1, max_length=512, examples=["starter"])
    base_url: BaseUrl = ""
    ollama_params: OllamaParams | None = None
    params: Params | None = None


class RunRequest(BaseModel):
    """An order: one model over one suite."""

    model_config = ConfigDict(extra="forbid")

    project_id: ProjectId
    suite: Text = Field(
        min_length=1,
        max_length=128,
        examples=["starter"],
        description='"mine@2" names version 2 of a suite of your own',
    )
    config: ModelConfig
    tasks: list[Text] = Field(default_factory=list, description="Tasks of the suite; empty means all")
    limit: Count = Field(default=None, description="First N rows of each task")
    num_fewshot: int | None = Field(default=None, ge=0, le=_INT32_MAX, description="Examples in each prompt")
    rollouts: Rollouts = None
    priority: Urgency = "high"
    scoring_method: Literal["auto", "loglikelihood", "generate", "constrained"] = Field(
        default="auto", description="How choices are scored; auto takes what the engine can do"
    )
    prompt_form: PromptForm = "auto"
    truncate: Literal["none", "left"] = Field(
        default="none",
        description="What becomes of a prompt over the context: a failure, or cut from the left",
    )
    cache: Literal["off", "reuse"] = Field(
        default="off",
        description="reuse: take stored answers of earlier runs to the same requests of the same engine",
    )
    stream: bool = Field(
        default=False,
        description="Ask a provider over HTTP to stream: shows the time to the first token, costs CPU",
    )
    params: Params | None = Field(default=None, description="Parameters for any provider")
    max_cost: MaxCost = None

    @model_validator(mode="after")
    def one_set_of_params(self) -> "RunRequest":
        given = (self.params, self.config.params, self.config.ollama_params)
        if sum(params is not None for params in given) > 1:
            raise ValueError("give only one of params, config.params and config.ollama_params")
        return self

    def to_order(self) -> run_pb2.RunOrder:
        params = self.params or self.config.params or self.config.ollama_params
        return run_pb2.RunOrder(
            project_id=self.project_id,
            suite=self.suite,
            tasks=self.tasks,
            model=f"{self.config.provider}/{self.config.model}",
            base_url=self.config.base_url,
            limit=self.limit,
            num_fewshot=self.num_fewshot,
            rollouts=self.rollouts,
            priority=PRIORITIES[self.priority],
            params=params.to_proto() if params else None,
            scoring_method=_SCORING_METHODS[self.scoring_method],
            prompt_form=PROMPT_FORMS[self.prompt_form],
            truncation=_TRUNCATIONS[self.truncate],
            max_cost=self.max_cost,
            stream_answers=self.stream,
            reuse_answers=self.cache == "reuse",
        )
