"""The leaderboard and the history."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2, run_pb2
from proctor.values.names.model_name import provider_of
from proctor.values.run import MAX_HISTORY_DAYS, MAX_LEADERBOARD_MODELS, unparsed_warning
from proctor.values.sample import MAX_FEWSHOT
from proctor.values.scoring import ScoringMethod
from proctor.wire.enums import number_of, value_of, word_of
from proctor.wire.report import suspicions_of_entry
from services.gateway.api.models import full_model, names_of, provider_and_name
from services.gateway.api.runs.job import choice_scoring
from services.gateway.api.runs.requests import KindFilter, ModelFilter, kind_number
from services.gateway.api.suites.schemas import BenchmarkFilter, check_known_benchmark
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import Cursor, ProjectFilter, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import interval, moment, optional, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName

R = TypeVar("R", bound="Ranked")
H = TypeVar("H", bound="HistoryEntryShown")

_METRIC = (
    "headline, accuracy, score (the mean of each task's main metric), or any metric of the benchmark; "
    "empty: the headline figure, which the suite names"
)
MetricQuery = Annotated[Text, Query(description=_METRIC)]
_ERRORS = problems(400, 404, 422, 503)


class TrendShown(BaseModel):
    difference: float | None = Field(description="Current minus previous figure")
    p_value: float | None = Field(description="Two-sided p-value of the paired test")
    previous_job_id: str


class _Entry(BaseModel):
    """The fields of a run in the leaderboard and in the history."""

    score: float | None
    benchmark_count: int = Field(description="Number of tasks in the figure")
    ci95: tuple[float, float] | None
    n: int
    scoring_method: str | None = Field(description="How choices are scored; null without choices")
    num_fewshot: int | None = Field(description="As ordered; null means each task's default")
    unparsed_rate: float | None
    suspicions: str = Field(
        description="Of rollouts: how many are suspicious, and the score of the others; empty where none is"
    )
    trend: str | None = Field(description="up, down or steady against its previous run; null without one")
    trend_details: TrendShown | None
    completed_at: datetime | None


class Ranked(_Entry):
    rank: int | None = Field(description="Null when unranked; ties share a rank")
    model: str = Field(description="As ordered; with its provider where several listed ones have the name")
    provider: str
    tied_with: list[str] = Field(
        description="Listed models of any rank without a significant difference to this one"
    )
    not_compared_with: list[str] = Field(
        description="Listed models without a paired test: not compared yet, or no test is possible"
    )
    job_id: str | None = Field(description="Null for a baseline")
    run_count: int = Field(
        description="Completed runs of the model under these conditions; 1001 where they are more than 1,000"
    )
    is_selected_best: bool = Field(
        description="It is the best of several runs and not the latest, so its figure flatters"
    )
    unranked_because: list[str] = Field(description="Why it is unranked")


class ConditionShown(BaseModel):
    name: str = Field(examples=["temperature"])
    value: str = Field(description='As words; "none" where it is not set')


class LeaderboardShown(BaseModel):
    leaderboard: list[Ranked]
    unranked: list[Ranked] = Field(description="Models under other evaluation conditions, with the reasons")
    baselines: list[Ranked] = Field(description="Baselines without a model")
    total_models: int = Field(description="Number of ranked models, including those beyond the limit")
    last_updated: datetime | None
    suite: str
    metric: str
    scoring_method: str | None = Field(description="How choices of the ranked models are scored")
    conditions: list[ConditionShown] = Field(description="Evaluation conditions of the ranked models")
    warnings: list[str] = Field(
        description="A sentence for each model with many unparsed answers, or with suspicious rollouts"
    )
    note: str = Field(description="What the ranked runs lack where no run is whole; else empty")
    pending_comparisons: int = Field(
        description="Pairs that are still being compared: their ties are missing, and ranks may change"
    )
    noise_floor: float | None = Field(
        description="Two runs of one model here differ by less in 95 % of repetitions; null without any"
    )
    repeated_runs: int = Field(description="Runs that the noise floor is from")
    less_is_better: bool = Field(description="Of the metric: the lowest figure comes first")


class HistoryEntryShown(_Entry):
    job_id: str
    status: str
    model_name: str = Field(description="As ordered, without the provider")
    provider: str
    benchmark_suite: str = Field(description="The suite or the id of the data set")
    dataset_name: str | None = Field(description="Only for a run over a data set")
    project_id: int
    project_name: ProjectName
    metric: str
    answered: int
    failed: int
    unranked_because: list[str] = Field(description="Why it is unranked")


class HistoryShown(BaseModel):
    history: list[HistoryEntryShown]
    total_runs: int = Field(description="Over all pages; 1001 where there are more than 1,000")
    date_range: str = Field(examples=["Last 30 days"])
    next_cursor: str | None


def leaderboard_warnings(found: leaderboard_service_pb2.GetLeaderboardResponse) -> list[str]:
    sentences: list[str] = []
    for entry in (*found.entries, *found.unranked):
        sentences.append(unparsed_warning(optional(entry, "unparsed_rate"), entry.model))
        suspicions = suspicions_of_entry(entry)
        sentences.append(f"{entry.model}: {suspicions}" if suspicions else "")
    return [sentence for sentence in sentences if sentence]


def ranked(
    body: type[R], entry: leaderboard_pb2.LeaderboardEntry, names: Mapping[str, str], **given: object
) -> R:
    """`names`: short names of models. A baseline is no model. `given` are fields that only this body has."""
    return present(
        body,
        entry,
        **_common(entry),
        model=names.get(entry.model, entry.model),
        provider=provider_of(entry.model),
        tied_with=[names.get(model, model) for model in entry.tied_with],
        not_compared_with=[names.get(model, model) for model in entry.not_compared_with],
        job_id=entry.run_id or None,
        **given,
    )


def history_entry(body: type[H], entry: leaderboard_pb2.LeaderboardEntry, **given: object) -> H:
    """`given` are fields that only this body has."""
    return present(
        body,
        entry,
        **_common(entry),
        job_id=entry.run_id,
        status=word_of(run_pb2.RunState, entry.state),
        **provider_and_name(entry.model),
        benchmark_suite=entry.benchmark,
        metric=entry.figure.metric,
        **given,
    )


def _common(entry: leaderboard_pb2.LeaderboardEntry) -> dict[str, object]:
    trend, direction = entry.trend, entry.trend.direction
    return {
        "score": optional(entry.figure, "mean"),
        "benchmark_count": entry.task_count,
        "ci95": interval(entry.figure),
        "n": entry.figure.n,
        "suspicions": suspicions_of_entry(entry),
        "scoring_method": choice_scoring(entry.scoring_method),
        "trend": word_of(leaderboard_pb2.TrendDirection, direction) if direction else None,
        "trend_details": _trend(trend) if trend.previous_run_id else None,
        "completed_at": moment(entry.closed_at),
    }


def _trend(trend: leaderboard_pb2.Trend) -> TrendShown:
    return present(TrendShown, trend, previous_job_id=trend.previous_run_id)


@dataclass(frozen=True, slots=True)
class LeaderboardParameters:
    """Selection of a leaderboard."""

    suite: BenchmarkFilter = "glue"
    metric: MetricQuery = ""
    limit: Annotated[int, Query(ge=1, le=MAX_LEADERBOARD_MODELS)] = 10
    best: Annotated[bool, Query(description="Rank each model by its best run, not its latest")] = False
    scoring_method: ScoringMethod | None = None
    num_fewshot: Annotated[int | None, Query(ge=0, le=MAX_FEWSHOT)] = None
    project_id: ProjectFilter = None
    include: Annotated[
        Literal["limited"] | None,
        Query(
            description="limited: rank runs of the first rows too, with others of the same limit. "
            "Where no run is whole, partial ones are ranked unasked"
        ),
    ] = None
    like: Annotated[
        str,
        Query(
            pattern="^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$",
            description="Id of a closed job of the suite: rank the runs under all of its conditions",
        ),
    ] = ""

    def to_proto(self) -> leaderboard_service_pb2.GetLeaderboardRequest:
        return leaderboard_service_pb2.GetLeaderboardRequest(
            benchmark=self.suite,
            metric=self.metric,
            max_entries=self.limit,
            is_best=self.best,
            scoring_method=number_of(self.scoring_method),
            num_fewshot=self.num_fewshot,
            project_id=self.project_id,
            includes_limited=self.include == "limited",
            like_run_id=self.like,
        )


@dataclass(frozen=True, slots=True)
class HistoryParameters:
    """Filters and page of a history."""

    model_name: ModelFilter = ""
    suite: BenchmarkFilter = ""
    kind: KindFilter = "suite"
    status: Annotated[
        Literal["completed", "failed", "cancelled"] | None,
        Query(description="Only runs that finished in this state"),
    ] = None
    days: Annotated[int, Query(ge=1, le=MAX_HISTORY_DAYS)] = 30
    metric: MetricQuery = ""
    limit: Annotated[int, Query(ge=1, le=500)] = 100
    cursor: Cursor = ""

    def to_proto(self) -> leaderboard_service_pb2.ListHistoryRequest:
        return leaderboard_service_pb2.ListHistoryRequest(
            model=self.model_name,
            benchmark=self.suite,
            days=self.days,
            metric=self.metric,
            page_size=self.limit,
            page_token=self.cursor,
            kind=kind_number(self.kind, self.suite),
            state=value_of(run_pb2.RunState, self.status or "", unset=""),
        )


router = APIRouter(prefix=BENCHMARKING, tags=["leaderboard"])


@router.get("/leaderboard", responses=_ERRORS, summary="Models of a benchmark by rank")
async def leaderboard(
    scheduler: SchedulerCalls, results: ResultsCalls, query: Annotated[LeaderboardParameters, Depends()]
) -> LeaderboardShown:
    found = await results.leaderboard.GetLeaderboard(query.to_proto())
    # Only where nothing is found: a removed suite keeps its leaderboard.
    if not found.entries and not found.unranked:
        await check_known_benchmark(scheduler, query.suite)
    names = names_of(entry.model for entry in (*found.entries, *found.unranked))
    return LeaderboardShown(
        leaderboard=[ranked(Ranked, entry, names) for entry in found.entries],
        unranked=[ranked(Ranked, entry, names) for entry in found.unranked],
        baselines=[ranked(Ranked, entry, names) for entry in found.baselines],
        total_models=found.total_models,
        last_updated=moment(found.last_updated),
        suite=query.suite,
        metric=found.metric,
        scoring_method=choice_scoring(found.scoring_method),
        conditions=[present(ConditionShown, one) for one in found.conditions],
        warnings=leaderboard_warnings(found),
        note=found.note,
        pending_comparisons=found.pending_comparisons,
        noise_floor=optional(found, "noise_floor"),
        repeated_runs=found.repeated_runs,
        less_is_better=found.less_is_better,
    )


@router.get("/history", responses=_ERRORS, summary="Closed runs, newest first")
async def history(
    scheduler: SchedulerCalls, results: ResultsCalls, query: Annotated[HistoryParameters, Depends()]
) -> HistoryShown:
    request = query.to_proto()
    request.model = await full_model(scheduler, query.model_name)
    page = await results.leaderboard.ListHistory(request)
    if not page.total:
        await check_known_benchmark(scheduler, query.suite)
    return HistoryShown(
        history=[history_entry(HistoryEntryShown, entry) for entry in page.entries],
        total_runs=page.total,
        date_range=f"Last {query.days} days" if query.days > 1 else "Last day",
        next_cursor=page.next_page_token or None,
    )
