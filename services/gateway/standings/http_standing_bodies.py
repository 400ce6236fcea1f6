"""The leaderboard and the history as they go out over HTTP."""

from datetime import datetime

from pydantic import BaseModel, Field


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
