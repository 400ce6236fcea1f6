"""The leaderboard, read from results: for a response, for a file, and for each push."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from proctor.v1 import run_pb2, summary_pb2
from proctor.v1.leaderboard_service_pb2 import (
    GetLeaderboardRequest,
    GetLeaderboardResponse,
    ListHistoryRequest,
)
from proctor.values.run import MAX_HISTORY_DAYS, MAX_LEADERBOARD_MODELS
from proctor.values.sample import MAX_FEWSHOT
from proctor.wire.enums import value_of
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.suites.schemas import check_known_benchmark
from services.gateway.backends.calls import Backends, Results
from services.gateway.pages.filters import filter_options
from services.gateway.pages.leaderboard.pareto import AGAINST, ParetoView, pareto_view
from services.gateway.pages.leaderboard.view import (
    SCORING_METHODS,
    SHOWN,
    TOPS,
    LeaderboardView,
    leaderboard_view,
)

_SUITE = "glue"
# Without one the page has the number that is shown at first.
_LIMITS = frozenset(str(top) for top in TOPS if top != SHOWN)
_SUMMARIES_AT_A_TIME = 8
# Refused filters, which the page shows with the reason.
REFUSED = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND})


@dataclass(frozen=True, slots=True)
class LeaderboardAddress:
    """Filters as the address has them; what is not understood is ignored, so old links stay valid."""

    suite: str = ""
    metric: str = ""
    scoring_method: str = ""
    num_fewshot: str = ""
    best: str = ""
    include: str = ""
    like: str = ""
    q: str = ""
    limit: str = ""
    against: str = ""

    def named(self, suite: str) -> dict[str, str]:
        """The filters that are set and understood."""
        is_count = self.num_fewshot.isdecimal() and len(self.num_fewshot) < 4
        named = {
            "suite": suite,
            "metric": self.metric[:64],
            "scoring_method": self.scoring_method if self.scoring_method in SCORING_METHODS else "",
            "num_fewshot": self.num_fewshot if is_count and int(self.num_fewshot) <= MAX_FEWSHOT else "",
            "best": "true" if self.best == "true" else "",
            "include": "limited" if self.include == "limited" else "",
            "like": self.like[:36],
            "q": self.q.strip()[:512],
            "limit": self.limit if self.limit in _LIMITS else "",
            "against": self.against if self.against in AGAINST else "",
        }
        return {name: value for name, value in named.items() if value}


async def read_leaderboard(
    backends: Backends, parameters: LeaderboardAddress, now: datetime
) -> tuple[LeaderboardView, ErrorKind | None]:
    """The page, and the kind of the error where the filters are refused."""
    filters = await understood(backends.results, parameters)
    (found, refused), options = await asyncio.gather(
        _found(backends, filters, is_chosen=bool(parameters.suite)),
        filter_options(backends.scheduler, filters),
    )
    view = leaderboard_view(found, options, now, refused.message if refused else "")
    if "against" in filters:
        view = replace(view, pareto=await _pareto(backends.results, filters["against"], view))
    return view, refused.kind if refused else None


async def understood(results: Results, parameters: LeaderboardAddress) -> dict[str, str]:
    """The filters, with the newest suite where none is chosen."""
    return parameters.named(parameters.suite[:128] or await _newest_suite(results))


async def _pareto(results: Results, against: str, view: LeaderboardView) -> ParetoView:
    """The chart of scores against cost or time, which are read from the summaries of the runs shown."""
    rows = [row for band in view.bands for row in band]
    slots = asyncio.Semaphore(_SUMMARIES_AT_A_TIME)

    async def summary(run_id: str) -> summary_pb2.RunSummary:
        async with slots:
            return await results.summary(run_id)

    summaries = await asyncio.gather(*(summary(row.job_id or "") for row in rows))
    return pareto_view(against, rows, summaries, less_is_better=view.less_is_better)


async def _newest_suite(results: Results) -> str:
    """That of the run that was closed last."""
    newest = ListHistoryRequest(days=MAX_HISTORY_DAYS, page_size=1, kind=run_pb2.RUN_KIND_SUITE)
    history = await results.leaderboard.ListHistory(newest)
    return next((entry.benchmark for entry in history.entries), _SUITE)


async def _found(
    backends: Backends, filters: dict[str, str], *, is_chosen: bool
) -> tuple[GetLeaderboardResponse, DomainError | None]:
    """The leaderboard, or an empty one and why the filters are refused.

    A chosen suite must exist.
    """
    try:
        found = await backends.results.leaderboard.GetLeaderboard(ranking_request(filters))
        # Only where nothing is found: a removed suite keeps its leaderboard.
        if is_chosen and not found.entries and not found.unranked:
            await check_known_benchmark(backends.scheduler, filters["suite"])
    except DomainError as error:
        if error.kind not in REFUSED:
            raise
        return GetLeaderboardResponse(), error
    return found, None


def ranking_request(filters: Mapping[str, str]) -> GetLeaderboardRequest:
    shots = filters.get("num_fewshot")
    return GetLeaderboardRequest(
        benchmark=filters["suite"],
        metric=filters.get("metric", ""),
        max_entries=MAX_LEADERBOARD_MODELS if "q" in filters else int(filters.get("limit", SHOWN)),
        is_best="best" in filters,
        scoring_method=value_of(run_pb2.ScoringMethod, filters.get("scoring_method", ""), unset=""),
        num_fewshot=int(shots) if shots else None,
        includes_limited="include" in filters,
        like_run_id=filters.get("like", ""),
    )
