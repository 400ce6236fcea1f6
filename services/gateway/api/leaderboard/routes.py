"""The leaderboard and the history."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from proctor.v1 import leaderboard_service_pb2
from proctor.values.scoring import ScoringMethod
from proctor.wire.convert import number_of
from services.gateway.api.leaderboard.schemas import History, Leaderboard, past_run, ranked
from services.gateway.api.runs.job import choice_scoring
from services.gateway.api.suites.suite_names import SuiteFilter, check_known_suite
from services.gateway.backends.backends import Results, Scheduler
from services.gateway.errors.http_problem import problems
from services.gateway.http.fields import INT32_MAX, INT64_MAX
from services.gateway.http.presentation import moment
from services.gateway.paths import BENCHMARKING

_METRIC = (
    "accuracy, score (the mean of each task's main metric), or any metric of the suite; "
    "empty: accuracy, or score where no task has it"
)

Metric = Annotated[str, Query(description=_METRIC)]


class LeaderboardQuery:
    """Selection of a leaderboard."""

    def __init__(  # noqa: PLR0913  # the parameters of the query
        self,
        suite: SuiteFilter = "glue",
        metric: Metric = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
        *,
        best: Annotated[bool, Query(description="Rank each model by its best run, not its latest")] = False,
        scoring_method: ScoringMethod | None = None,
        num_fewshot: Annotated[int | None, Query(ge=0, le=INT32_MAX)] = None,
        project_id: Annotated[int | None, Query(ge=0, le=INT64_MAX)] = None,
    ) -> None:
        self.request = leaderboard_service_pb2.GetLeaderboardRequest(
            suite=suite,
            metric=metric,
            limit=limit,
            is_best=best,
            scoring_method=number_of(scoring_method),
            num_fewshot=num_fewshot,
            project_id=project_id,
        )


class HistoryQuery:
    """Filters and page of a history."""

    def __init__(  # noqa: PLR0913  # the parameters of the query
        self,
        model_name: Annotated[str, Query(description='"provider/name"')] = "",
        suite: SuiteFilter = "",
        days: Annotated[int, Query(ge=1, le=3650)] = 30,
        metric: Metric = "",
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        *,
        cursor: Annotated[str, Query(description="next_cursor of the previous page")] = "",
    ) -> None:
        self.request = leaderboard_service_pb2.GetHistoryRequest(
            model=model_name, suite=suite, days=days, metric=metric, page_size=limit, page_token=cursor
        )


class LeaderboardApi:
    """The handlers and their backends."""

    def __init__(self, scheduler: Scheduler, results: Results) -> None:
        self._scheduler = scheduler
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["leaderboard"])
        errors = problems(400, 404, 422, 503)
        router.get("/leaderboard", responses=errors, summary="Models of a suite by rank")(self.leaderboard)
        router.get("/history", responses=errors, summary="Closed runs, newest first")(self.history)
        return router

    async def leaderboard(self, query: Annotated[LeaderboardQuery, Depends()]) -> Leaderboard:
        found = await self._results.leaderboard.GetLeaderboard(query.request)
        if not found.entries and not found.unranked:
            await check_known_suite(self._scheduler, query.request.suite)
        return Leaderboard(
            leaderboard=[ranked(entry) for entry in found.entries],
            unranked=[ranked(entry) for entry in found.unranked],
            baselines=[ranked(entry) for entry in found.baselines],
            total_models=found.total_models,
            last_updated=moment(found.last_updated),
            suite=query.request.suite,
            metric=found.metric,
            scoring=choice_scoring(found.scoring_method),
        )

    async def history(self, query: Annotated[HistoryQuery, Depends()]) -> History:
        page = await self._results.leaderboard.GetHistory(query.request)
        if not page.total:
            await check_known_suite(self._scheduler, query.request.suite)
        days = query.request.days
        return History(
            history=[past_run(entry) for entry in page.entries],
            total_runs=page.total,
            date_range=f"Last {days} days" if days > 1 else "Last day",
            next_cursor=page.next_page_token or None,
        )
