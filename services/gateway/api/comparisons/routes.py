"""Paired comparison of runs."""

import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.v1 import comparison_pb2, run_pb2
from proctor.v1 import comparison_service_pb2 as comparing_pb2
from services.gateway.api.comparisons.conclusions import difference_of, lead_of, recommendations, significance
from services.gateway.api.suites.schemas import SuiteName
from services.gateway.backends import ResultsCalls
from services.gateway.errors.http_problem import problems
from services.gateway.http.parameters import Text
from services.gateway.http.presentation import interval, present, word
from services.gateway.paths import BENCHMARKING


class CompareRequest(BaseModel):
    """Two to six models by their latest complete run of a suite, or two to six runs."""

    model_config = ConfigDict(extra="forbid")

    model_ids: list[Text] = Field(
        min_length=2, max_length=6, description='Models as "provider/name", or ids of jobs'
    )
    benchmark_suite: SuiteName = Field(
        default="", max_length=128, description="Required with models; all its versions"
    )
    metrics: list[Text] = Field(
        default_factory=list, description='Empty means each task\'s main metric; "accuracy" means acc'
    )
    tasks: list[Text] = Field(default_factory=list, description="Empty means all that the runs share")
    force: bool = Field(default=False, description="Compare different scoring methods, with a warning")

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

    def to_proto(self) -> comparing_pb2.CompareRunsRequest:
        are_runs = _is_run(self.model_ids[0])
        return comparing_pb2.CompareRunsRequest(
            run_ids=self.model_ids if are_runs else (),
            models=() if are_runs else self.model_ids,
            suite=self.benchmark_suite,
            metrics=self.metrics,
            tasks=self.tasks,
            is_forced=self.force,
        )


class ComparedJob(BaseModel):
    job_id: str
    model: str
    scoring: str | None = Field(description="Scoring method of choices; null without choices")
    limit: int | None = Field(description="First rows of each task only; null means all")
    score: float | None = Field(description="The suite's figure of the main metric")


class DifferenceShown(BaseModel):
    """First minus second. Null means undefined, never zero."""

    first: str
    second: str
    task: str | None = Field(description="Null for the suite as a whole")
    metric: str
    first_mean: float | None
    second_mean: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None = Field(description="Two-sided, before correction")
    adjusted_p_value: float | None = Field(description="Holm")
    test: str
    pairs: int = Field(description="Samples that both runs answered")
    clusters: int
    smallest_detectable: float | None = Field(description="With a power of 80 %")
    first_failed: int = Field(description="Failed samples, which are excluded")
    second_failed: int
    first_unparsed: int = Field(description="Unparsed answers among the pairs, which count as wrong")
    second_unparsed: int
    difference_if_parsed: float | None = Field(description="Over pairs parsed in both; null if all were")
    only_first_right: int
    only_second_right: int
    verdict: str = Field(description="first_better, second_better, not_shown or undefined")
    remark: str


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
    warnings: list[str]
    runs: list[ComparedJob]
    differences: list[DifferenceShown] = Field(
        description="Per pair, task and metric; and for the whole suite"
    )
    corrected_over: int = Field(description="Number of tests in the Holm correction")


class Compared(BaseModel):
    comparison: ComparisonShown


def _is_run(model_id: str) -> bool:
    try:
        uuid.UUID(model_id)
    except ValueError:
        return False
    return True


router = APIRouter(prefix=BENCHMARKING, tags=["comparisons"])


@router.post(
    "/compare",
    responses=problems(400, 404, 409, 422, 503),
    summary="Compare two or more models or runs",
)
async def compare(results: ResultsCalls, body: CompareRequest) -> Compared:
    response = await results.comparisons.CompareRuns(body.to_proto())
    return Compared(comparison=_comparison(response.comparison))


def _comparison(comparison: comparison_pb2.Comparison) -> ComparisonShown:
    names = _run_names(comparison)
    differences = [difference_of(each) for each in comparison.differences]
    overall = [each for each in differences if each.is_overall]
    metric = overall[0].metric if overall else None
    lead = lead_of(len(names), [each for each in overall if each.metric == metric])
    gap, gap_interval = lead.gap.seen_from(lead.best) if lead else (None, None)
    return ComparisonShown(
        models_compared=names,
        benchmark_suite=comparison.suite,
        metric=metric,
        best_performing=names[lead.best] if lead else None,
        best_tied_with=[names[run] for run in lead.tied] if lead else [],
        gap_between=[names[lead.best], names[lead.runner_up]] if lead else [],
        performance_gap=gap,
        performance_gap_ci95=gap_interval,
        statistical_significance=significance(lead, comparison.corrected_over),
        recommendations=recommendations(differences, names, comparison.suite, comparison.corrected_over),
        warnings=list(comparison.warnings),
        runs=[_compared_job(run) for run in comparison.runs],
        differences=[_difference(each, names) for each in comparison.differences],
        corrected_over=comparison.corrected_over,
    )


def _run_names(comparison: comparison_pb2.Comparison) -> list[str]:
    """Names of the models; with the run when a model has several."""
    models = Counter(run.model for run in comparison.runs)
    return [
        run.model if models[run.model] == 1 else f"{run.model} (run {run.run_id[:8]})"
        for run in comparison.runs
    ]


def _compared_job(run: comparison_pb2.ComparedRun) -> ComparedJob:
    method = run.scoring_method
    scoring = word(run_pb2.ScoringMethod, method) if method else None
    return present(ComparedJob, run, job_id=run.run_id, scoring=scoring)


def _difference(message: comparison_pb2.Difference, names: Sequence[str]) -> DifferenceShown:
    first, second = names[message.first], names[message.second]
    verdict = difference_of(message).verdict
    return present(
        DifferenceShown, message, first=first, second=second, ci95=interval(message), verdict=verdict
    )
