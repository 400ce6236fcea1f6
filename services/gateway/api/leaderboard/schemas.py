"""Bodies of the leaderboard and the history."""

from datetime import datetime

from pydantic import BaseModel, Field

from proctor.v1 import leaderboard_pb2, run_pb2
from services.gateway.api.runs.job import choice_scoring
from services.gateway.http.presentation import interval, moment, optional, present, word


class TrendShown(BaseModel):
    difference: float | None = Field(description="Current minus previous figure")
    p_value: float | None = Field(description="Two-sided p-value of the paired test")
    previous_job_id: str


class _Entry(BaseModel):
    """What the leaderboard and the history say of a run."""

    score: float | None
    benchmark_count: int = Field(description="Number of tasks in the figure")
    ci95: tuple[float, float] | None
    n: int
    scoring: str | None = Field(description="Scoring method of choices; null without choices")
    num_fewshot: int | None = Field(description="As ordered; null means each task's default")
    unparsed_rate: float | None
    trend: str | None = Field(description="up, down or steady against its previous run; null without one")
    trend_details: TrendShown | None
    completed_at: datetime | None


class Ranked(_Entry):
    rank: int | None = Field(description="Null when unranked; ties share a rank")
    model: str
    provider: str
    tied_with: list[str] = Field(
        description="Listed models of any rank without a significant difference to this one"
    )
    not_compared_with: list[str] = Field(
        description="Listed models without a paired test: not compared yet, or no test is possible"
    )
    job_id: str | None = Field(description="Null for a baseline")
    is_selected_best: bool = Field(
        description="It is the best of several runs and not the latest, so its figure is biased upwards"
    )
    unranked_because: list[str] = Field(description="Why it is unranked")


class Leaderboard(BaseModel):
    leaderboard: list[Ranked]
    unranked: list[Ranked] = Field(description="Models under other evaluation conditions, with the reasons")
    baselines: list[Ranked] = Field(description="Baselines without a model")
    total_models: int = Field(description="Number of ranked models, including those beyond the limit")
    last_updated: datetime | None
    suite: str
    metric: str
    scoring: str | None = Field(description="Scoring method of the ranked models")


class PastRun(_Entry):
    job_id: str
    status: str
    model_name: str
    benchmark_suite: str = Field(description="The suite or the id of the data set")
    dataset_name: str | None = Field(description="Only for a run over a data set")
    project_id: int
    metric: str
    answered: int
    failed: int
    unranked_because: list[str] = Field(description="Why it is not a complete run of its suite")


class History(BaseModel):
    history: list[PastRun]
    total_runs: int = Field(description="Over all pages")
    date_range: str = Field(examples=["Last 30 days"])
    next_cursor: str | None


def ranked(entry: leaderboard_pb2.LeaderboardEntry) -> Ranked:
    provider = entry.model.partition("/")[0]
    return present(Ranked, entry, **_common(entry), provider=provider, job_id=entry.run_id or None)


def past_run(entry: leaderboard_pb2.LeaderboardEntry) -> PastRun:
    return present(
        PastRun,
        entry,
        **_common(entry),
        job_id=entry.run_id,
        status=word(run_pb2.RunState, entry.state),
        model_name=entry.model,
        benchmark_suite=entry.suite,
        metric=entry.figure.metric,
    )


def _common(entry: leaderboard_pb2.LeaderboardEntry) -> dict[str, object]:
    trend, direction = entry.trend, entry.trend.direction
    return {
        "score": optional(entry.figure, "mean"),
        "benchmark_count": entry.task_count,
        "ci95": interval(entry.figure),
        "n": entry.figure.n,
        "scoring": choice_scoring(entry.scoring_method),
        "trend": word(leaderboard_pb2.TrendDirection, direction) if direction else None,
        "trend_details": _trend(trend) if trend.previous_run_id else None,
        "completed_at": moment(entry.closed_at),
    }


def _trend(trend: leaderboard_pb2.Trend) -> TrendShown:
    return present(TrendShown, trend, previous_job_id=trend.previous_run_id)
