"""The ratings of a benchmark's models by judged pairs of their answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from proctor.v1.leaderboard_service_pb2 import GetRatingsRequest, GetRatingsResponse
from services.common.errors import DomainError
from services.gateway.api.comparisons.ratings import RatedModelShown, RatingsShown, ratings_shown
from services.gateway.backends.calls import BackendCalls
from services.gateway.http.paths import BENCHMARKING
from services.gateway.pages.addresses import FilteredPage, address
from services.gateway.pages.filters import FilterOptions, filter_options
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.leaderboard.reads import REFUSED, LeaderboardAddress, understood
from services.gateway.pages.page import PageOf

router = APIRouter(prefix="/leaderboard", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class RatingsAddress:
    """Filters as the address has them."""

    suite: str = ""
    prompt: str = ""
    judge: str = ""
    style_controlled: str = ""

    def named(self, suite: str) -> dict[str, str]:
        named = {
            "suite": suite,
            "prompt": self.prompt[:64],
            "judge": self.judge[:512],
            "style_controlled": "true" if self.style_controlled == "true" else "",
        }
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsView(FilteredPage):
    """`fault`: why nothing can be rated as asked."""

    found: RatingsShown
    options: FilterOptions
    scale: Scale
    fault: str

    @property
    def bands(self) -> Sequence[tuple[str, Sequence[RatedModelShown]]]:
        """Models that share a rank, each with the range of places."""
        bands = [(rank, list(band)) for rank, band in groupby(self.found.ratings, key=lambda one: one.rank)]
        return [
            (f"{rank}–{rank + len(band) - 1}" if len(band) > 1 else str(rank), band) for rank, band in bands
        ]

    @property
    def prompts(self) -> Sequence[str]:
        shown = [self.found.prompt] if self.found.prompt else []
        return sorted({*shown, *self.found.other_prompts})

    @property
    def judges(self) -> Sequence[str]:
        return sorted({*self.found.judges, *filter(None, [self.get("judge")])})

    @property
    def json_link(self) -> str:
        return address(f"{BENCHMARKING}/ratings", self.filters)

    @property
    def is_placed(self) -> bool:
        """The judges favour a place by a test."""
        p_value = self.found.first_place_p_value
        return p_value is not None and p_value <= 0.05


@router.get("/ratings")
async def show_ratings(
    page: PageOf, backends: BackendCalls, parameters: Annotated[RatingsAddress, Depends()]
) -> Response:
    suite = (await understood(backends.results, LeaderboardAddress(suite=parameters.suite)))["suite"]
    filters = parameters.named(suite)
    (found, fault), options = await asyncio.gather(
        _found(backends, filters), filter_options(backends.scheduler, filters)
    )
    shown = ratings_shown(suite, found)
    ends = [end for one in shown.ratings for end in (*one.ci95, one.rating)]
    view = RatingsView(
        path="/leaderboard/ratings",
        filters=filters,
        found=shown,
        options=options,
        scale=Scale.around(ends),
        fault=fault,
    )
    return page.show("leaderboard/ratings", view)


async def _found(backends: BackendCalls, filters: dict[str, str]) -> tuple[GetRatingsResponse, str]:
    request = GetRatingsRequest(
        benchmark=filters["suite"],
        prompt=filters.get("prompt", ""),
        judge=filters.get("judge", ""),
        is_style_controlled="style_controlled" in filters,
    )
    try:
        return await backends.results.leaderboard.GetRatings(request), ""
    except DomainError as error:
        if error.kind not in REFUSED:
            raise
        return GetRatingsResponse(), error.message
