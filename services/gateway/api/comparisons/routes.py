"""Paired comparison of runs."""

from collections import Counter
from collections.abc import Sequence

from fastapi import APIRouter

from proctor.v1 import comparison_pb2, run_pb2
from services.gateway.api.comparisons.conclusions import recommendations, significance
from services.gateway.api.comparisons.difference import difference_of, lead_of
from services.gateway.api.comparisons.schemas import (
    Compared,
    ComparedJob,
    CompareRequest,
    ComparisonShown,
    DifferenceShown,
)
from services.gateway.backends.backends import Results
from services.gateway.errors.http_problem import problems
from services.gateway.http.presentation import interval, present, word
from services.gateway.paths import BENCHMARKING


class ComparisonApi:
    """The handler and its backend."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["comparisons"])
        router.post(
            "/compare",
            responses=problems(400, 404, 409, 422, 503),
            summary="Compare two or more models or runs",
        )(self.compare)
        return router

    async def compare(self, body: CompareRequest) -> Compared:
        response = await self._results.comparisons.CompareRuns(body.to_proto())
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
