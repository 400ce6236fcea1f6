"""The leaderboard and the history as they go out over HTTP.
Standings from their messages: undefined numbers as null, places that are none as null.
"""

from datetime import datetime

from pydantic import BaseModel, Field

from proctor.v1 import leaderboard_pb2
from services.gateway.api.runs.job import interval
from services.gateway.http.presentation import choice_scoring, moment, state_word, trend_word


class TrendShown(BaseModel):
    difference: float | None = Field(description="Present minus previous")
    p_value: float | None = Field(description="Two-sided, of the paired test")
    previous_job_id: str


class Ranked(BaseModel):
    rank: int | None = Field(description="Null where it is not ranked; ties share one")
    model: str
    score: float | None
    provider: str
    benchmark_count: int = Field(description="Tasks behind the figure")
    ci95: tuple[float, float] | None
    tied_with: list[str] = Field(
        description="Listed models whose own comparison with it shows no difference, of whatever rank"
    )
    not_compared_with: list[str] = Field(
        description="Listed models of which no paired test tells: not compared yet, or none is possible"
    )
    trend: str | None = Field(description="up, down or steady against its previous run; null without one")
    trend_details: TrendShown | None
    job_id: str | None = Field(description="Null for a baseline")
    n: int
    scoring: str | None = Field(description="How choices were scored; null where there are none")
    num_fewshot: int | None = Field(description="As ordered; null means as each task says")
    unparsed_rate: float | None
    is_selected_best: bool = Field(
        description="The best of several runs and not the latest: selected, so its figure flatters"
    )
    unranked_because: list[str] = Field(description="Why it is unranked")
    completed_at: datetime | None


class Leaderboard(BaseModel):
    leaderboard: list[Ranked]
    unranked: list[Ranked] = Field(
        description="Models that cannot be ranked with the others, with the reasons"
    )
    baselines: list[Ranked] = Field(description="What needs no model: the floor of every leaderboard")
    total_models: int = Field(description="Ranked ones, beyond the limit too")
    last_updated: datetime | None
    suite: str
    metric: str
    scoring: str | None = Field(description="How the ranked models were scored")


class PastRun(BaseModel):
    job_id: str
    status: str
    model_name: str
    benchmark_suite: str = Field(description="Of a run over a data set its id")
    dataset_name: str | None = Field(description="Of a run over a data set")
    project_id: int
    score: float | None
    ci95: tuple[float, float] | None
    n: int
    metric: str
    benchmark_count: int = Field(description="Tasks behind the figure")
    scoring: str | None
    num_fewshot: int | None
    answered: int
    failed: int
    unparsed_rate: float | None
    trend: str | None
    trend_details: TrendShown | None
    unranked_because: list[str] = Field(description="Why it is no complete run of its suite")
    completed_at: datetime | None


class History(BaseModel):
    history: list[PastRun]
    total_runs: int = Field(description="Over all pages")
    date_range: str = Field(examples=["Last 30 days"])
    next_cursor: str | None


def ranked(standing: leaderboard_pb2.LeaderboardEntry) -> Ranked:
    figure = standing.figure
    return Ranked(
        rank=standing.rank or None,
        model=standing.model,
        score=figure.mean if figure.HasField("mean") else None,
        provider=standing.model.partition("/")[0],
        benchmark_count=standing.task_count,
        ci95=interval(figure),
        tied_with=list(standing.tied_with),
        not_compared_with=list(standing.not_compared_with),
        trend=trend_word(standing.trend.direction),
        trend_details=_trend(standing.trend),
        job_id=standing.run_id or None,
        n=figure.n,
        scoring=choice_scoring(standing.scoring_method) or None,
        num_fewshot=_shots(standing),
        unparsed_rate=_unparsed_rate(standing),
        is_selected_best=standing.is_selected_best,
        unranked_because=list(standing.unranked_because),
        completed_at=moment(standing.closed_at),
    )


def past_run(standing: leaderboard_pb2.LeaderboardEntry) -> PastRun:
    figure = standing.figure
    return PastRun(
        job_id=standing.run_id,
        status=state_word(standing.state),
        model_name=standing.model,
        benchmark_suite=standing.suite,
        dataset_name=standing.dataset_name or None,
        project_id=standing.project_id,
        score=figure.mean if figure.HasField("mean") else None,
        ci95=interval(figure),
        n=figure.n,
        metric=figure.metric,
        benchmark_count=standing.task_count,
        scoring=choice_scoring(standing.scoring_method) or None,
        num_fewshot=_shots(standing),
        answered=standing.answered,
        failed=standing.failed,
        unparsed_rate=_unparsed_rate(standing),
        trend=trend_word(standing.trend.direction),
        trend_details=_trend(standing.trend),
        unranked_because=list(standing.unranked_because),
        completed_at=moment(standing.closed_at),
    )


def _trend(trend: leaderboard_pb2.Trend) -> TrendShown | None:
    if not trend.previous_run_id:
        return None
    return TrendShown(
        difference=trend.difference if trend.HasField("difference") else None,
        p_value=trend.p_value if trend.HasField("p_value") else None,
        previous_job_id=trend.previous_run_id,
    )


def _shots(standing: leaderboard_pb2.LeaderboardEntry) -> int | None:
    return standing.num_fewshot if standing.HasField("num_fewshot") else None


def _unparsed_rate(standing: leaderboard_pb2.LeaderboardEntry) -> float | None:
    return standing.unparsed_rate if standing.HasField("unparsed_rate") else None
