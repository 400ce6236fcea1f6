"""Rescoring: stored answers under other filters or metrics."""

from typing import Annotated, Any, Self, TypeVar

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import sample_pb2
from proctor.values.scoring import Reasoning
from proctor.wire.enums import number_of
from services.gateway.api.runs.job import task_figures
from services.gateway.api.runs.schemas import FigureShown
from services.gateway.backends.calls import ResultsCalls
from services.gateway.http.parameters import MAX_FIELDS, JobId, RequestBody, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import json_text, present
from services.gateway.http.problem import problems

R = TypeVar("R", bound="Rescored")

router = APIRouter(prefix=BENCHMARKING, tags=["benchmarks"])


def _writable(value: dict[str, Any]) -> dict[str, Any]:
    json_text(value)
    return value


class MetricRequested(RequestBody):
    """A metric with its options beside it, as in a metric_list."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"maxProperties": MAX_FIELDS})

    metric: Text = Field(min_length=1)

    @model_validator(mode="after")
    def options_can_be_sent(self) -> Self:
        json_text(self.model_extra)
        return self

    def to_proto(self) -> sample_pb2.MetricUse:
        options = self.model_extra
        return sample_pb2.MetricUse(name=self.metric, options_json=json_text(options) if options else "")


def _named(given: object) -> object:
    """Parsed as one form, so that an error is about the form that was given."""
    return {"metric": given} if isinstance(given, str) else given


class RescoreRequest(RequestBody):
    """Other metrics or filters for one task. Recorded scores stay unchanged."""

    task: Text = Field(min_length=1)
    metrics: list[
        Annotated[MetricRequested, BeforeValidator(_named, json_schema_input_type=str | MetricRequested)]
    ] = Field(
        default_factory=list,
        max_length=MAX_FIELDS,
        description="Names, or entries of a metric_list with their options; empty means the task's own",
        examples=[["exact_match", {"metric": "exact_match", "ignore_case": True}]],
    )
    filters: (
        Annotated[
            list[Annotated[dict[str, Any], Field(max_length=MAX_FIELDS), AfterValidator(_writable)]],
            Field(max_length=MAX_FIELDS),
        ]
        | None
    ) = Field(
        default=None, description="In the form of a filter_list; null means the task's own, empty means none"
    )
    reasoning: Reasoning | None = Field(
        default=None,
        description="Whether reasoning is left out, or scored with the answer; null means as in the run",
    )

    def filters_json(self) -> str | None:
        if self.filters is None:
            return None
        return json_text(self.filters) if self.filters else ""


class UnscoredAnswerShown(BaseModel):
    sample: int = Field(description="Number of its sample in the run, from 0")
    rollout: int = 0
    row_id: str = Field(default="", description="Id of a data set's row")
    problem: str


class Rescored(BaseModel):
    job_id: str
    task: str
    figures: dict[str, FigureShown] = Field(description="By metric, under the other scoring")
    recorded: dict[str, FigureShown] = Field(description="By metric, as recorded")
    changed: int = Field(description="Answers whose prediction differs from the recorded one")
    unparsed: int
    recorded_unparsed: int
    unscored: int = Field(default=0, description="Answers that cannot be scored; excluded from all figures")
    unscored_answers: list[UnscoredAnswerShown] = Field(
        default_factory=list, description="The first 20 of them"
    )


@router.post(
    "/rescore/{job_id}",
    responses=problems(400, 404, 409, 422, 503),
    response_model_exclude_defaults=True,
    summary="Score stored answers again, without requests to the model",
)
async def rescore(results: ResultsCalls, job_id: JobId, body: RescoreRequest) -> Rescored:
    request = rescore_pb2.RescoreTaskRequest(
        run_id=job_id,
        task=body.task,
        metrics=[metric.to_proto() for metric in body.metrics],
        filters_json=body.filters_json(),
        reasoning=number_of(body.reasoning),
    )
    # All answers of the task are scored again before it returns.
    response = await results.rescoring.RescoreTask(request)
    return rescored(Rescored, response, job_id=job_id, task=body.task)


def rescored(body: type[R], response: rescore_pb2.RescoreTaskResponse, **given: object) -> R:
    return present(
        body,
        response,
        figures=task_figures(response.summary),
        recorded=task_figures(response.recorded),
        unparsed=response.summary.unparsed,
        recorded_unparsed=response.recorded.unparsed,
        **given,
    )
