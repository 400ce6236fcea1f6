"""Paired comparison of runs."""

import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.v1 import comparison_pb2, comparison_service_pb2, run_pb2
from proctor.values.comparison import Verdict
from proctor.wire.enums import member_of, word_of
from services.gateway.api.comparisons.conclusions import (
    DifferenceShown,
    lead_of,
    recommendations,
    significance,
)
from services.gateway.api.comparisons.notes import NoiseFloorShown, read_notes
from services.gateway.api.models import full_model, names_of, provider_and_name
from services.gateway.api.suites.schemas import BenchmarkName
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import MAX_FIELDS, MAX_TASKS, RequestBody, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import interval, present
from services.gateway.http.problem import problems

J = TypeVar("J", bound="ComparedJob")
D = TypeVar("D", bound=DifferenceShown)

router = APIRouter(prefix=BENCHMARKING, tags=["comparisons"])


_RUN_ID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_ONE_KIND: list[JsonValue] = [
    {"properties": {"model_ids": {"items": {"pattern": _RUN_ID}}}},
    {
        "required": ["benchmark_suite"],
        "properties": {
            "benchmark_suite": {"minLength": 1},
            "model_ids": {"items": {"not": {"pattern": _RUN_ID}}},
        },
    },
]


class RunsOrModels(RequestBody):
    """Two models by their latest completed run of a benchmark, or two runs."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _ONE_KIND})

    model_ids: list[Text] = Field(
        min_length=2,
        max_length=2,
        json_schema_extra={"uniqueItems": True},
        description="Models as ordered or as provider/name, or ids of jobs",
    )
    benchmark_suite: BenchmarkName = Field(
        default="", max_length=128, description="Required with models; all its versions"
    )
    metrics: list[Text] = Field(
        default_factory=list,
        max_length=MAX_FIELDS,
        description='Empty means each task\'s main metric; "accuracy" means acc',
    )
    tasks: list[Text] = Field(
        default_factory=list, max_length=MAX_TASKS, description="Empty means all that the runs share"
    )

    @model_validator(mode="after")
    def of_one_kind(self) -> Self:
        are_runs = {_is_run(each) for each in self.model_ids}
        if len(are_runs) > 1:
            raise ValueError("give either models or ids of jobs in model_ids, not both")
        if are_runs == {False} and not self.benchmark_suite:
            raise ValueError("with models, name the benchmark_suite")
        if len(set(self.model_ids)) < len(self.model_ids):
            raise ValueError("model_ids must be distinct")
        return self

    def compared(self) -> dict[str, Any]:
        """The fields of a request of results."""
        are_runs = _is_run(self.model_ids[0])
        return {
            "run_ids": self.model_ids if are_runs else (),
            "models": () if are_runs else self.model_ids,
            "benchmark": self.benchmark_suite,
            "metrics": self.metrics,
            "tasks": self.tasks,
        }


class CompareRequest(RunsOrModels):
    """Two to six models by their latest completed run of a benchmark, or two to six runs."""

    model_ids: list[Text] = Field(
        min_length=2,
        max_length=6,
        json_schema_extra={"uniqueItems": True},
        description="Models as ordered or as provider/name, or ids of jobs",
    )
    force: bool = Field(
        default=False, description="Compare different scoring methods or options of a metric, with a warning"
    )

    def to_proto(self) -> comparison_service_pb2.CompareRunsRequest:
        return comparison_service_pb2.CompareRunsRequest(**self.compared(), is_forced=self.force)


class ComparedJob(BaseModel):
    job_id: str
    model: str = Field(description="As ordered, without the provider")
    provider: str
    scoring_method: str | None = Field(description="How choices are scored; null without choices")
    limit: int | None = Field(description="First rows of each task only; null means all")
    score: float | None = Field(description="The benchmark's figure of the main metric")
    unparsed_rate: float | None = Field(description="Share of its answers; null without any")


class DifferingConditionShown(BaseModel):
    name: str = Field(examples=["temperature"])
    values: list[str] = Field(description='In the order of the runs; "none" where it is not set')
    tasks: list[str] = Field(description="The compared tasks that it differs in; empty for all")


class ComparisonShown(BaseModel):
    models_compared: list[str]
    benchmark_suite: str
    metric: str | None = Field(description="Metric of best_performing")
    best_performing: str | None = Field(description="The best on the shared samples; see best_tied_with")
    best_tied_with: list[str] = Field(description="Those without a significant difference to the best")
    gap_between: list[str] = Field(description="The best and the next one")
    performance_gap: float | None = Field(description="Difference of these two on their shared samples")
    performance_gap_ci95: tuple[float, float] | None
    statistical_significance: str = Field(description="Significance of this gap")
    recommendations: list[str]
    conditions: list[DifferingConditionShown] = Field(
        description="Evaluation conditions in which the runs differ, beside their models"
    )
    warnings: list[str]
    runs: list[ComparedJob]
    differences: list[DifferenceShown] = Field(
        description="Per pair, task and metric; and for the whole benchmark"
    )
    corrected_over: int = Field(description="Number of tests in the Holm correction")
    noise_floors: list[NoiseFloorShown] = Field(
        default_factory=list, description="By how much two single runs of a model must differ here"
    )
    judged_differences: list[str] = Field(
        default_factory=list,
        description="Two runs by each judge of both, corrected for its error; a sentence each",
    )


class Compared(BaseModel):
    comparison: ComparisonShown


def _is_run(model_id: str) -> bool:
    try:
        uuid.UUID(model_id)
    except ValueError:
        return False
    return True


@router.post(
    "/compare",
    responses=problems(400, 404, 409, 422, 503),
    summary="Compare two or more models or runs",
)
async def compare(scheduler: SchedulerCalls, results: ResultsCalls, body: CompareRequest) -> Compared:
    request = body.to_proto()
    # Results stores models under their full names.
    request.models[:] = [await full_model(scheduler, model) for model in request.models]
    response = await results.comparisons.CompareRuns(request)
    shown = comparison_shown(response.comparison)
    notes = await read_notes(scheduler, results, response.comparison, shown.models_compared)
    shown.noise_floors = list(notes.noise_floors)
    shown.judged_differences = list(notes.judged_differences)
    shown.warnings += notes.judge_warnings
    return Compared(comparison=shown)


def comparison_shown(comparison: comparison_pb2.Comparison) -> ComparisonShown:
    names = run_names(comparison)
    differences = [difference_shown(DifferenceShown, each, names) for each in comparison.differences]
    overall = [each for each in differences if each.is_overall]
    metric = overall[0].metric if overall else None
    lead = lead_of(names, [each for each in overall if each.metric == metric])
    gap, gap_interval = lead.gap.seen_from(lead.best) if lead else (None, None)
    return ComparisonShown(
        models_compared=names,
        benchmark_suite=comparison.benchmark,
        metric=metric,
        best_performing=lead.best if lead else None,
        best_tied_with=lead.tied if lead else [],
        gap_between=[lead.best, lead.runner_up] if lead else [],
        performance_gap=gap,
        performance_gap_ci95=gap_interval,
        statistical_significance=significance(lead, comparison.corrected_over),
        recommendations=recommendations(differences, comparison.benchmark, comparison.corrected_over),
        conditions=[present(DifferingConditionShown, one) for one in comparison.conditions],
        warnings=list(comparison.warnings),
        runs=[compared_job(ComparedJob, run) for run in comparison.runs],
        differences=differences,
        corrected_over=comparison.corrected_over,
    )


def run_names(comparison: comparison_pb2.Comparison) -> list[str]:
    """Names of the models, as they were ordered; with the run when a model has several."""
    models = Counter(run.model for run in comparison.runs)
    names = names_of(models)
    return [
        names[run.model] if models[run.model] == 1 else f"{names[run.model]} (run {run.run_id[:8]})"
        for run in comparison.runs
    ]


def compared_job(body: type[J], run: comparison_pb2.ComparedRun, **given: object) -> J:
    """`given` are fields that only this body has."""
    method = run.scoring_method
    shown = provider_and_name(run.model)
    return present(
        body,
        run,
        job_id=run.run_id,
        model=shown["model_name"],
        provider=shown["provider"],
        scoring_method=word_of(run_pb2.ScoringMethod, method) if method else None,
        **given,
    )


def difference_shown(
    body: type[D], message: comparison_pb2.Difference, names: Sequence[str], **given: object
) -> D:
    """`names` are those of the compared runs. `given` are fields that only this body has."""
    verdict = member_of(Verdict, message.verdict) or Verdict.UNDEFINED
    return present(
        body,
        message,
        first=names[message.first],
        second=names[message.second],
        ci95=interval(message),
        verdict=verdict,
        verdict_if_parsed=member_of(Verdict, message.verdict_if_parsed),
        **given,
    )
