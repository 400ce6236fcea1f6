"""What runs prove about each other, over HTTP."""

from collections import Counter

from fastapi import APIRouter

from proctor.v1 import comparison_pb2
from services.gateway.api.comparisons.conclusions import recommendations, significance_words
from services.gateway.api.comparisons.difference import difference_of, difference_shown, lead_of
from services.gateway.api.comparisons.schemas import Compared, ComparedJob, CompareRequest, ComparisonShown
from services.gateway.backends.results import ResultsBackend
from services.gateway.errors.http_problem import problems
from services.gateway.http.presentation import choice_scoring
from services.gateway.paths import BENCHMARKING


class ComparisonApi:
    """The handler, with what it asks."""

    def __init__(self, results: ResultsBackend) -> None:
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["standings"])
        router.post(
            "/compare",
            responses=problems(400, 404, 409, 422, 503),
            summary="What two or more models or runs prove about each other",
        )(self.compare)
        return router

    async def compare(self, body: CompareRequest) -> Compared:
        return Compared(comparison=comparison_shown(await self._results.compare_runs(body.to_proto())))


def comparison_shown(comparison: comparison_pb2.Comparison) -> ComparisonShown:
    names = run_names(comparison)
    differences = [difference_of(each) for each in comparison.differences]
    over_all = [each for each in differences if each.is_over_all]
    metric = over_all[0].metric if over_all else None
    lead = lead_of(len(names), [each for each in over_all if each.metric == metric])
    gap, interval = lead.gap.seen_from(lead.best) if lead else (None, None)
    return ComparisonShown(
        models_compared=names,
        benchmark_suite=comparison.suite,
        metric=metric,
        best_performing=names[lead.best] if lead else None,
        best_tied_with=[names[place] for place in lead.tied] if lead else [],
        gap_between=[names[lead.best], names[lead.runner_up]] if lead else [],
        performance_gap=gap,
        performance_gap_ci95=interval,
        statistical_significance=significance_words(lead, comparison.corrected_over),
        recommendations=recommendations(differences, names, comparison.suite, comparison.corrected_over),
        warnings=list(comparison.warnings),
        runs=[_compared_job(run) for run in comparison.runs],
        differences=[difference_shown(each, names) for each in comparison.differences],
        corrected_over=comparison.corrected_over,
    )


def run_names(comparison: comparison_pb2.Comparison) -> list[str]:
    """Models; with the run where a model takes part with several."""
    models = Counter(run.model for run in comparison.runs)
    return [
        run.model if models[run.model] == 1 else f"{run.model} (run {run.run_id[:8]})"
        for run in comparison.runs
    ]


def _compared_job(run: comparison_pb2.ComparedRun) -> ComparedJob:
    return ComparedJob(
        job_id=run.run_id,
        model=run.model,
        scoring=choice_scoring(run.scoring_method) or None,
        limit=run.limit if run.HasField("limit") else None,
        score=run.score if run.HasField("score") else None,
    )
