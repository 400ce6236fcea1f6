"""Requests for runs: bodies with their ranges, as orders for the scheduler."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from fastapi import Query
from google.protobuf.struct_pb2 import Struct
from pydantic import ConfigDict, Field, JsonValue, model_validator

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.comparison import DEFAULT_DECISION_ALPHA, MAX_MARGIN_POINTS
from proctor.values.generation import PARAMETER_RANGES
from proctor.values.priority import Priority, default_priority
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.run import RunState
from proctor.values.sample import MAX_FEWSHOT
from proctor.values.scoring import Reasoning, Truncation
from proctor.wire.enums import number_of, value_of
from services.gateway.api.runs.labels import DaysFilter, LabelsGiven, NameFilter, TagFilter
from services.gateway.api.suites.schemas import BenchmarkFilter
from services.gateway.http.parameters import (
    JSON_INT_MAX,
    MAX_FIELDS,
    MAX_TASKS,
    Count,
    Cursor,
    ProjectFilter,
    RequestBody,
    Text,
)
from services.gateway.http.project_names import ProjectNumber

# Protobuf cannot parse messages that are nested much deeper.
_MAX_NESTING = 16

ProjectId = Annotated[
    ProjectNumber,
    Field(description="Groups runs: a number that is made on first use, or the name of a declared project"),
]
Rollouts = Annotated[
    int | None,
    Field(
        ge=1,
        le=MAX_ROLLOUTS,
        description="Repetitions of each sample; without it 1, or the `repeats` of the tasks",
    ),
]
PromptFormField = Annotated[
    Literal["auto", "chat", "completion"], Field(description="How text prompts are sent to the model")
]
TruncateField = Annotated[
    Truncation,
    Field(description="What happens to a prompt that exceeds the context: it fails, or is cut from the left"),
]
ReasoningField = Annotated[
    Reasoning,
    Field(description="Whether reasoning is left out of scoring, or scored with the answer"),
]
BaseUrlField = Annotated[
    Text,
    Field(
        max_length=1024,
        description="OpenAI-compatible server to use instead of the pool's own, without a key; "
        "an operator has to allow it",
    ),
]
MaxCost = Annotated[
    float | None,
    Field(
        gt=0,
        allow_inf_nan=False,
        description="The run fails when its tokens cost this much, in the currency of the price file",
    ),
]
StreamAnswers = Annotated[
    bool,
    Field(description="Request streamed answers, to measure the time to the first token; costs CPU"),
]
ReuseAnswers = Annotated[
    bool,
    Field(description="Reuse stored answers of earlier runs to the same requests of the same engine"),
]

ModelFilter = Annotated[Text, Query(description="As it was ordered, or with its provider: provider/name")]
KindFilter = Annotated[
    Literal["suite", "dataset", "all"],
    Query(description="Runs over suites, over data sets and of batches, or all; not with a suite"),
]


MAX_JUDGES = 10


class JudgeNamed(RequestBody):
    """A judge of the answers of the job that is ordered: a job of its own, once that one has completed."""

    model_id: Text = Field(min_length=1, max_length=512, description='"provider/name", or an alias')
    prompt: Text = Field(
        default="", max_length=64, description="An installed judge prompt; correctness if neither is given"
    )
    document: Text = Field(default="", max_length=32 * 1024, description="A judge prompt as YAML instead")
    scale: Text = Field(default="", max_length=2000, description="That of the prompt if unset")

    def to_proto(self) -> run_pb2.NamedJudge:
        return run_pb2.NamedJudge(
            model=self.model_id, prompt=self.prompt, document=self.document, scale=self.scale
        )


JudgesField = Annotated[
    list[JudgeNamed] | None,
    Field(
        max_length=MAX_JUDGES,
        description="Judges of the answers, each checked before the job starts."
        " Null means those of the suite, an empty list none",
    ),
]


def _in_range(name: str) -> Any:
    """The constraint of a parameter's field."""
    limits = PARAMETER_RANGES[name]
    above, least = (limits.lowest, None) if limits.above else (None, limits.lowest)
    return Field(gt=above, ge=least, le=limits.highest if math.isfinite(limits.highest) else None)


Temperature = Annotated[float | None, _in_range("temperature")]
RepetitionPenalty = Annotated[float | None, _in_range("repetition_penalty")]


class Params(RequestBody):
    """Parameters of generation for any provider. Unlisted ones are passed to the provider unchanged."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"maxProperties": MAX_FIELDS})

    temperature: Temperature = Field(default=None, description="0 is greedy")
    top_p: Annotated[float | None, _in_range("top_p")] = None
    top_k: Annotated[int | None, _in_range("top_k")] = Field(default=None, description="0 means no limit")
    max_tokens: Count = None
    seed: int | None = Field(default=None, ge=0, le=JSON_INT_MAX)
    repetition_penalty: RepetitionPenalty = Field(default=None, description="1 means none")
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
    """Parameters by Ollama's names. Unlisted ones are passed to the provider unchanged."""

    max_tokens: Count = Field(default=None, alias="num_predict")
    context_tokens: Count = Field(default=None, alias="num_ctx")
    repetition_penalty: RepetitionPenalty = Field(
        default=None, alias="repeat_penalty", description="1 means none"
    )


def provider_params(given: Mapping[str, Any]) -> Struct:
    """Raises ValueError for values that a Struct cannot hold."""
    check_nesting(given)
    params = Struct()
    for name, value in given.items():
        try:
            params.update({name: value})
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name!a} cannot be sent: {error}") from error
    return params


def check_nesting(given: Mapping[str, Any]) -> None:
    """Raises ValueError for values that are nested too deep."""
    if not _is_within(_MAX_NESTING, given):
        raise ValueError(f"parameters may be nested {_MAX_NESTING} levels deep, not deeper")


def _is_within(levels: int, value: object) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_within(levels - 1, each) for each in inner)


_NONE: dict[str, JsonValue] = {"type": "null"}


class ModelConfig(RequestBody):
    """The model to evaluate and its parameters, in one of two forms."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"properties": {name: _NONE}} for name in ("params", "ollama_params")]}
    )

    provider: str = Field(min_length=1, max_length=64, pattern=r"^[^/\s]+$", examples=["vllm"])
    model: Text = Field(min_length=1, max_length=512, examples=["starter"])
    base_url: BaseUrlField = ""
    ollama_params: OllamaParams | None = None
    params: Params | None = None


_PARAMETERS_ONCE: list[JsonValue] = [
    {"properties": {"params": _NONE}},
    {"properties": {"config": {"properties": {"params": _NONE, "ollama_params": _NONE}}}},
]


class UntilDecidedGiven(RequestBody):
    """A second job with another model, over the same samples in one random order. Both stop once one model is
    shown to be better, or both to be equivalent."""

    against_model: Text = Field(
        min_length=1,
        max_length=512,
        examples=["openai/gpt-5"],
        description='"provider/name"',
    )
    margin_points: float | None = Field(
        default=None,
        gt=0,
        le=MAX_MARGIN_POINTS,
        allow_inf_nan=False,
        description="Smaller differences are equivalent, in hundredths of the metric's range; null: none is",
    )
    alpha: float = Field(
        default=DEFAULT_DECISION_ALPHA, gt=0, lt=0.5, description="Chance of a wrong decision"
    )

    def to_proto(self) -> run_pb2.UntilDecided:
        return run_pb2.UntilDecided(
            against_model=self.against_model, margin_points=self.margin_points, alpha=self.alpha
        )


class RunRequest(LabelsGiven):
    """An order: one model over one suite. Parameters stand in one place."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _PARAMETERS_ONCE})

    project_id: ProjectId
    suite: Text = Field(
        min_length=1,
        max_length=128,
        examples=["starter"],
        description='"mine@2" is version 2 of a suite of your own',
    )
    config: ModelConfig
    tasks: list[Text] = Field(
        default_factory=list, max_length=MAX_TASKS, description="Tasks of the suite; empty means all"
    )
    limit: Count = Field(default=None, description="First N rows of each task")
    num_fewshot: int | None = Field(default=None, ge=0, le=MAX_FEWSHOT, description="Examples in each prompt")
    rollouts: Rollouts = None
    priority: Priority = default_priority(is_background=False)
    scoring_method: Literal["auto", "loglikelihood", "generate", "constrained"] = Field(
        default="auto", description="How choices are scored; auto depends on the engine's capabilities"
    )
    prompt_form: PromptFormField = "auto"
    truncate: TruncateField = Truncation.NONE
    reasoning: ReasoningField = Reasoning.SEPARATE
    reuse_answers: ReuseAnswers = False
    stream_answers: StreamAnswers = False
    params: Params | None = Field(default=None, description="Parameters for any provider")
    max_cost: MaxCost = None
    judges: JudgesField = None
    until_decided: UntilDecidedGiven | None = None

    @model_validator(mode="after")
    def one_set_of_params(self) -> Self:
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
            priority=number_of(self.priority),
            params=params.to_proto() if params else None,
            scoring_method=value_of(run_pb2.ScoringMethod, self.scoring_method, unset="auto"),
            prompt_form=value_of(run_pb2.PromptForm, self.prompt_form, unset="auto"),
            truncation=number_of(self.truncate),
            reasoning=number_of(self.reasoning),
            max_cost=self.max_cost,
            reuse_answers=self.reuse_answers,
            stream_answers=self.stream_answers,
            judges=[judge.to_proto() for judge in self.judges or ()],
            without_judges=self.judges == [],
            until_decided=self.until_decided.to_proto() if self.until_decided else None,
        )


def kind_number(kind: str, benchmark: str) -> run_pb2.RunKind.ValueType:
    """Unspecified for all, and where the benchmark says it."""
    return run_pb2.RUN_KIND_UNSPECIFIED if benchmark or kind == "all" else value_of(run_pb2.RunKind, kind)


@dataclass(frozen=True, slots=True)
class RunsParameters:
    """Filters and page of a list of jobs."""

    model_name: ModelFilter = ""
    suite: BenchmarkFilter = ""
    status: RunState | None = None
    kind: KindFilter = "suite"
    name: NameFilter = ""
    tag: TagFilter = ""
    days: DaysFilter = None
    project_id: ProjectFilter = None
    limit: Annotated[int, Query(ge=1, le=500)] = 20
    cursor: Cursor = ""

    def to_proto(self) -> scheduler_pb2.ListRunsRequest:
        return scheduler_pb2.ListRunsRequest(
            page_size=self.limit,
            page_token=self.cursor,
            state=number_of(self.status),
            benchmark=self.suite,
            model=self.model_name,
            kind=kind_number(self.kind, self.suite),
            name=self.name,
            tag=self.tag,
            days=self.days or 0,
            project_id=self.project_id,
        )
