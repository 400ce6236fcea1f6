"""Ratings of models by the verdicts of judges on pairs of their answers."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from proctor.v1 import leaderboard_service_pb2
from services.gateway.api.models import full_model
from services.gateway.api.suites.schemas import BenchmarkFilter, check_known_benchmark
from services.gateway.backends.calls import ResultsCalls, SchedulerCalls
from services.gateway.http.parameters import JSON_INT_MAX, Text
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import optional, present
from services.gateway.http.problem import problems

router = APIRouter(prefix=BENCHMARKING, tags=["leaderboard"])


class RatedModelShown(BaseModel):
    rank: int = Field(description="Ties share a rank")
    model: str
    rating: float = Field(description="Points of Elo around a mean of 0: 400 are odds of ten to one")
    ci95: tuple[float, float]
    wins: int = Field(description="Pairs of answers")
    ties: int
    losses: int


class StyleEffectShown(BaseModel):
    name: str = Field(description="length in characters, or markup: headings, list items, bold texts")
    points: float = Field(description="What a doubling adds to a rating")
    ci95: tuple[float, float]


class RatingsShown(BaseModel):
    """Null means undefined."""

    suite: str
    ratings: list[RatedModelShown]
    unrated_models: list[str] = Field(description="No chain of judged pairs joins them with the rated ones")
    prompt: str | None = Field(description="The judge prompt whose verdicts count; null without any")
    prompt_version: str | None
    other_prompts: list[str] = Field(description="Other judge prompts of pairs that there are verdicts of")
    judges: list[str]
    judging_jobs: list[str] = Field(description="Newest first: of each judge and two models the newest")
    left_out_jobs: int = Field(description="Judging jobs beyond what one rating takes")
    matches: int = Field(description="Pairs of answers, each asked about in both orders")
    tie_odds: float | None = Field(description="Odds of a tie to a win between equal models")
    first_place_bias: float | None = Field(
        description="How much more often an answer wins where it is shown first than where it is second"
    )
    first_place_p_value: float | None
    style_effects: list[StyleEffectShown] = Field(description="Empty unless style is controlled")


@dataclass(frozen=True, slots=True)
class RatingsParameters:
    """Selection of ratings."""

    suite: BenchmarkFilter = "glue"
    prompt: Annotated[
        Text, Query(max_length=64, description="A judge prompt of pairs; empty: that of the newest job")
    ] = ""
    judge: Annotated[Text, Query(max_length=512, description="Only verdicts of this model")] = ""
    style_controlled: Annotated[
        bool, Query(description="Take what length and markup add to verdicts out of the ratings")
    ] = False
    project_id: Annotated[int | None, Query(ge=0, le=JSON_INT_MAX)] = None

    def to_proto(self) -> leaderboard_service_pb2.GetRatingsRequest:
        return leaderboard_service_pb2.GetRatingsRequest(
            benchmark=self.suite,
            prompt=self.prompt,
            judge=self.judge,
            project_id=self.project_id,
            is_style_controlled=self.style_controlled,
        )


@router.get(
    "/ratings",
    responses=problems(400, 404, 409, 422, 503),
    summary="Models of a benchmark by the verdicts of judges on pairs of their answers",
)
async def ratings(
    scheduler: SchedulerCalls, results: ResultsCalls, query: Annotated[RatingsParameters, Depends()]
) -> RatingsShown:
    request = query.to_proto()
    request.judge = await full_model(scheduler, query.judge)
    found = await results.leaderboard.GetRatings(request)
    # Only where nothing is found: a removed suite keeps its ratings.
    if not found.judging_run_ids:
        await check_known_benchmark(scheduler, query.suite)
    return ratings_shown(query.suite, found)


def ratings_shown(suite: str, found: leaderboard_service_pb2.GetRatingsResponse) -> RatingsShown:
    return present(
        RatingsShown,
        found,
        suite=suite,
        ratings=[present(RatedModelShown, one, ci95=(one.ci_low, one.ci_high)) for one in found.models],
        prompt=found.prompt or None,
        prompt_version=found.prompt_version or None,
        judging_jobs=list(found.judging_run_ids),
        left_out_jobs=found.left_out_runs,
        tie_odds=optional(found, "tie_odds"),
        first_place_bias=optional(found, "first_place_bias"),
        first_place_p_value=optional(found, "first_place_p_value"),
        style_effects=[
            present(StyleEffectShown, one, ci95=(one.ci_low, one.ci_high)) for one in found.style_effects
        ],
    )
