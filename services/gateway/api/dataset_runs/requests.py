"""Requests for runs over data sets: orders, lists of runs and pages of answers."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from proctor.v1 import outcome_pb2, run_pb2, sample_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.plain import INT32_MAX
from proctor.values.priority import Priority, default_priority
from proctor.values.run import WINDOW_PATTERN, RunState, window_seconds
from proctor.values.scoring import Reasoning, Truncation
from proctor.wire.enums import number_of, value_of
from proctor.wire.well_known import unless_empty
from services.gateway.api.runs.labels import DaysFilter, LabelsGiven, NameFilter, TagFilter
from services.gateway.api.runs.requests import (
    BaseUrlField,
    JudgesField,
    MaxCost,
    Params,
    ProjectId,
    PromptFormField,
    ReasoningField,
    ReuseAnswers,
    Rollouts,
    StreamAnswers,
    TruncateField,
    UntilDecidedGiven,
    check_nesting,
)
from services.gateway.http.errors import FileIsWhole
from services.gateway.http.parameters import (
    MAX_FIELDS,
    Count,
    Cursor,
    Keywords,
    ProjectFilter,
    RequestBody,
    Text,
)
from services.gateway.http.presentation import json_text

_MAX_NAMES = 100

ModelName = Annotated[Text, Field(min_length=1, max_length=512)]
# Stored alike: an answer is shown as answered in a run without metrics, and as scored in one with them.
LengthBound = Annotated[int | None, Query(ge=0, le=INT32_MAX, description="Length of the answer")]
ScoreBound = Annotated[float | None, Query(allow_inf_nan=False, description="Score of the metric")]


def _is_window(text: str) -> str:
    window_seconds(text)
    return text


Window = Annotated[
    str,
    AfterValidator(_is_window),
    Keywords({"pattern": WINDOW_PATTERN}),
    Field(description='"24h", "90m": the run fails when it is not finished by then, including waiting'),
]


class MetricWithOptions(RequestBody):
    """A metric with options of its own."""

    name: Text = Field(min_length=1, max_length=64, examples=["exact_match"])
    options: dict[str, Any] = Field(default_factory=dict, max_length=MAX_FIELDS)

    @field_validator("options")
    @classmethod
    def can_be_sent(cls, options: dict[str, Any]) -> dict[str, Any]:
        check_nesting(options)
        json_text(options)
        return options

    def to_proto(self) -> sample_pb2.MetricUse:
        options = self.options
        return sample_pb2.MetricUse(name=self.name, options_json=json_text(options) if options else "")


def _named(given: object) -> object:
    """Parsed as one form, so that an error is about the form that was given."""
    return {"name": given} if isinstance(given, str) else given


MetricField = Annotated[
    MetricWithOptions, BeforeValidator(_named, json_schema_input_type=str | MetricWithOptions)
]


class DatasetRunRequest(LabelsGiven):
    """An order: one model over one data set."""

    model_id: ModelName = Field(
        description='"provider/name", or an alias from the pools file', examples=["vllm/starter"]
    )
    dataset_id: Text = Field(
        min_length=1, max_length=255, description='"ds_…", or "file-…" of a file for batches'
    )
    metrics: list[MetricField] = Field(
        default_factory=list,
        max_length=_MAX_NAMES,
        description="Metrics of the answers against the targets of the rows; empty means no scoring",
        examples=[["exact_match"]],
    )
    params: Params | None = Field(default=None, description="Defaults; parameters of a row override them")
    limit: Count = Field(default=None, description="First N rows")
    rollouts: Rollouts = None
    priority: Priority | None = Field(
        default=None, description=f"{default_priority(is_background=True)} if unset"
    )
    project_id: ProjectId = 0
    line_models: list[ModelName] = Field(
        default_factory=list,
        max_length=_MAX_NAMES,
        description="Further names of the model that lines may use, besides its own name and aliases",
    )
    completion_window: Window | None = None
    reuse_answers: ReuseAnswers = False
    stream_answers: StreamAnswers = False
    max_cost: MaxCost = None
    prompt_form: PromptFormField = "auto"
    truncate: TruncateField = Truncation.NONE
    reasoning: ReasoningField = Reasoning.SEPARATE
    base_url: BaseUrlField = ""
    judges: JudgesField = None
    until_decided: UntilDecidedGiven | None = None

    def to_order(self) -> run_pb2.RunOrder:
        return run_pb2.RunOrder(
            project_id=self.project_id,
            dataset_id=self.dataset_id,
            model=self.model_id,
            base_url=self.base_url,
            metrics=[metric.to_proto() for metric in self.metrics],
            line_models=self.line_models,
            completion_window_seconds=(
                window_seconds(self.completion_window) if self.completion_window else None
            ),
            limit=self.limit,
            rollouts=self.rollouts,
            priority=number_of(self.priority),
            params=self.params.to_proto() if self.params else None,
            prompt_form=value_of(run_pb2.PromptForm, self.prompt_form, unset="auto"),
            truncation=number_of(self.truncate),
            reasoning=number_of(self.reasoning),
            max_cost=self.max_cost,
            reuse_answers=self.reuse_answers,
            until_decided=self.until_decided.to_proto() if self.until_decided else None,
            stream_answers=self.stream_answers,
            judges=[judge.to_proto() for judge in self.judges or ()],
        )


@dataclass(frozen=True, slots=True)
class DatasetRunsParameters:
    """Filters and page of a list of runs over data sets."""

    limit: Annotated[int, Query(ge=1, le=500)] = 20
    cursor: Cursor = ""
    status: RunState | None = None
    model: Annotated[Text, Query(description='"provider/name"')] = ""
    dataset_id: Annotated[Text, Query(description='"ds_…"')] = ""
    name: NameFilter = ""
    tag: TagFilter = ""
    days: DaysFilter = None
    project_id: ProjectFilter = None

    def to_proto(self) -> scheduler_pb2.ListRunsRequest:
        return scheduler_pb2.ListRunsRequest(
            page_size=self.limit,
            page_token=self.cursor,
            state=number_of(self.status),
            model=self.model,
            kind=run_pb2.RUN_KIND_DATASET,
            dataset_id=self.dataset_id,
            name=self.name,
            tag=self.tag,
            days=self.days or 0,
            project_id=self.project_id,
        )


@dataclass(frozen=True, slots=True)
class OutcomeConditions:
    """Filter of outcomes; all given conditions must match."""

    row_id: Annotated[Text, Query(alias="id", description="Substring of the row's id")] = ""
    text: Annotated[Text, Query(description="Substring of the prompt or the answer")] = ""
    metric: Annotated[Text, Query(description="Metric of min_score and max_score")] = ""
    min_score: ScoreBound = None
    max_score: ScoreBound = None
    min_characters: LengthBound = None
    max_characters: LengthBound = None
    is_golden: Annotated[bool, Query(alias="golden", description="Only golden answers")] = False
    is_marked_wrong: Annotated[
        bool, Query(alias="wrong", description="Only answers that are marked as wrong")
    ] = False

    @property
    def filter(self) -> results_pb2.OutcomeFilter | None:
        """None where no condition is given."""
        return unless_empty(results_pb2.OutcomeFilter(**asdict(self)))


@dataclass(frozen=True, slots=True)
class AnswerParameters:
    """Filter of outcomes, also by status, with position and size of a page."""

    conditions: Annotated[OutcomeConditions, Depends()]
    status: Literal["answered", "scored", "unparsed", "failed"] | None = None
    limit: Annotated[int, Query(ge=1, le=1000, description="A page of large answers has fewer")] = 100
    cursor: Cursor = ""
    sort: Annotated[
        Literal["score", "length", "time", "disagreement"] | None,
        Query(description="Answers without the value are left out; refused for over 1,500,000 answers"),
    ] = None
    descending: bool = False

    def to_proto(self, run_id: str) -> results_pb2.ListOutcomesRequest:
        status = "scored" if self.status == "answered" else self.status
        return results_pb2.ListOutcomesRequest(
            run_id=run_id,
            page_size=self.limit,
            page_token=self.cursor,
            status=value_of(outcome_pb2.OutcomeStatus, status or "", unset=""),
            filter=self.conditions.filter,
            sort=value_of(results_pb2.OutcomeSort, self.sort or "", unset=""),
            is_descending=self.descending,
            includes_verdicts=True,
        )

    def check_none(self) -> None:
        """Raises `FileIsWhole`: a filtered file could be mistaken for all answers."""
        if self.status or self.cursor or self.sort or self.conditions.filter:
            raise FileIsWhole(parameters="cursor, sort and the filters")
