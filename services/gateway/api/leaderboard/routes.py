"""The leaderboard and the history over HTTP."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from proctor.v1 import leaderboard_service_pb2 as leaderboard_pb2
from services.gateway.api.leaderboard.schemas import History, Leaderboard, past_run, ranked
from services.gateway.api.suites.suite_names import SuiteFilter, refuse_unknown
from services.gateway.backends.results import ResultsBackend
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.http_problem import problems
from services.gateway.http.presentation import SCORING_METHODS, choice_scoring, moment
from services.gateway.paths import BENCHMARKING

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_METRIC = (
    "accuracy, score (the mean of each task's main metric), or any metric of the suite; "
    "empty: accuracy, or score where no task has it"
)

Metric = Annotated[str, Query(description=_METRIC)]


class LeaderboardQuery:
    """Who is ranked, and by what."""

    def __init__(  # noqa: PLR0913  # a query has as many parameters as it has words
        self,
        suite: SuiteFilter = "glue",
        metric: Metric = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
        *,
        best: Annotated[bool, Query(description="By each model's best run, not its latest")] = False,
        scoring_method: Literal["loglikelihood", "generate", "constrained"] | None = None,
        num_fewshot: Annotated[int | None, Query(ge=0, le=_INT32_MAX)] = None,
        project_id: Annotated[int | None, Query(ge=0, le=_INT64_MAX)] = None,
    ) -> None:
        self.request = leaderboard_pb2.GetLeaderboardRequest(
            suite=suite,
            metric=metric,
            limit=limit,
            is_best=best,
            scoring_method=SCORING_METHODS[scoring_method or "unspecified"],
            num_fewshot=num_fewshot,
            project_id=project_id,
        )


class HistoryQuery:
    """Which runs are listed."""

    def __init__(  # noqa: PLR0913  # a query has as many parameters as it has words
        self,
        model_name: Annotated[str, Query(description='"provider/name"')] = "",
        suite: SuiteFilter = "",
        days: Annotated[int, Query(ge=1, le=3650)] = 30,
        metric: Metric = "",
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        *,
        cursor: Annotated[str, Query(description="next_cursor of the page before")] = "",
    ) -> None:
        self.request = leaderboard_pb2.GetHistoryRequest(
            model=model_name, suite=suite, days=days, metric=metric, page_size=limit, page_token=cursor
        )


class StandingsApi:
    """The handlers, with what they ask."""

    def __init__(self, scheduler: SchedulerBackend, results: ResultsBackend) -> None:
        self._scheduler = scheduler
        self._results = results

    def router(self) -> APIRouter:
        router = APIRouter(prefix=BENCHMARKING, tags=["standings"])
        refusals = problems(400, 404, 422, 503)
        router.get("/leaderboard", responses=refusals, summary="Models of a suite by rank")(self.leaderboard)
        router.get("/history", responses=refusals, summary="Closed runs, newest first")(self.history)
        return router

    async def leaderboard(self, query: Annotated[LeaderboardQuery, Depends()]) -> Leaderboard:
        board = await self._results.get_leaderboard(query.request)
        if not board.entries and not board.unranked:
            await refuse_unknown(self._scheduler, query.request.suite)
        return Leaderboard(
            leaderboard=[ranked(standing) for standing in board.entries],
            unranked=[ranked(standing) for standing in board.unranked],
            baselines=[ranked(standing) for standing in board.baselines],
            total_models=board.total_models,
            last_updated=moment(board.last_updated),
            suite=query.request.suite,
            metric=board.metric,
            scoring=choice_scoring(board.scoring_method) or None,
        )

    async def history(self, query: Annotated[HistoryQuery, Depends()]) -> History:
        page = await self._results.get_history(query.request)
        if not page.total:
            await refuse_unknown(self._scheduler, query.request.suite)
        days = query.request.days
        return History(
            history=[past_run(standing) for standing in page.entries],
            total_runs=page.total,
            date_range=f"Last {days} days" if days > 1 else "Last day",
            next_cursor=page.next_page_token or None,
        )
