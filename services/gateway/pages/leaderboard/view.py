"""Views of the leaderboard: bands of models, with figures on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from proctor.v1 import run_pb2
from proctor.v1.leaderboard_service_pb2 import GetLeaderboardResponse
from proctor.values.comparison import MAX_COMPARED
from proctor.values.run import MAX_LEADERBOARD_MODELS
from proctor.values.sample import MAX_FEWSHOT
from proctor.wire.enums import words_of
from services.gateway.api.leaderboard import ConditionShown, leaderboard_warnings
from services.gateway.http.paths import BENCHMARKING
from services.gateway.http.presentation import moment, optional, present
from services.gateway.pages.addresses import FilteredPage, address
from services.gateway.pages.filters import MAIN_METRICS, FilterOptions
from services.gateway.pages.interval_plot import Scale
from services.gateway.pages.leaderboard.pareto import ParetoView
from services.gateway.pages.leaderboard.rows import LeaderboardRow, entry_row, ranked_rows

SCORING_METHODS = words_of(run_pb2.ScoringMethod)
# Models on the page, unless all that can be listed are asked for.
SHOWN = 25
# How many of the first models can be asked for.
TOPS = (10, SHOWN, 50, MAX_LEADERBOARD_MODELS)
_API = f"{BENCHMARKING}/leaderboard"
# Conditions of runs that are not whole, in words.
_LACKS = {"missing tasks": "tasks missing", "stand-in rows": "stand-in rows"}
# Filters of the page that the API does not have.
_OF_THE_PAGE = ("q", "against")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardView(FilteredPage):
    """`bands`: models that share a rank, the best ones first. `fault`: why nothing can be ranked as asked.

    `pareto` is there where figures are shown against cost or time. `pending`: pairs that are still being
    compared.
    """

    bands: Sequence[Sequence[LeaderboardRow]]
    baselines: Sequence[LeaderboardRow]
    unranked: Sequence[LeaderboardRow]
    scale: Scale
    first: LeaderboardRow | None
    listed: int
    total: int
    metric: str
    conditions: Sequence[ConditionShown]
    warnings: Sequence[str]
    note: str
    pending: int
    fault: str
    last_updated: datetime | None
    options: FilterOptions
    now: datetime
    pareto: ParetoView | None = None
    noise_floor: float | None = None
    repeated_runs: int = 0
    less_is_better: bool = False

    @property
    def scoring_methods(self) -> Sequence[str]:
        return SCORING_METHODS

    @property
    def max_shots(self) -> int:
        return MAX_FEWSHOT

    @property
    def json_link(self) -> str:
        """The same ranking from the REST API; it has the models that the page filters out, too."""
        changes = {**dict.fromkeys(_OF_THE_PAGE, ""), "limit": str(self.limit)}
        return address(_API, {**self.filters, **changes})

    @property
    def compare_link(self) -> str:
        """The runs of the first ranked models beside each other; "" where there are not two."""
        first = [row.job_id for band in self.bands for row in band if row.job_id][:MAX_COMPARED]
        return address("/compare", [("run", run_id) for run_id in first]) if len(first) > 1 else ""

    @property
    def partial(self) -> str:
        """What the ranked runs lack of the whole suite, such as "limit 100, tasks missing"."""
        values = {one.name: one.value for one in self.conditions if one.value != "none"}
        lacks = {"limit": f"limit {values.get('limit')}", **_LACKS}
        return ", ".join(words for name, words in lacks.items() if name in values)

    @property
    def conditions_in_words(self) -> str:
        """Those that are set, in a line."""
        return "; ".join(f"{one.name} {one.value}" for one in self.conditions if one.value != "none")

    @property
    def limit(self) -> int:
        """The most models that are listed: of the ranked, and of the unranked."""
        return int(self.filters.get("limit", SHOWN))

    @property
    def tops(self) -> Sequence[tuple[str, str]]:
        """Values and labels of the numbers of models that can be asked for."""
        return [("" if top == SHOWN else str(top), f"top {top}") for top in TOPS]

    @property
    def longest(self) -> int:
        """The most models that can be asked for."""
        return MAX_LEADERBOARD_MODELS

    @property
    def max_listed(self) -> int:
        """The number that was asked for: a name is looked for among all that can be listed."""
        return MAX_LEADERBOARD_MODELS if self.get("q") else self.limit

    @property
    def shown(self) -> int:
        return sum(map(len, self.bands))

    @property
    def related(self) -> Sequence[LeaderboardRow]:
        """Models for which some pair shows no difference, or has no test."""
        return [row for band in self.bands for row in band if row.tied_with or row.not_compared_with]


def leaderboard_view(
    found: GetLeaderboardResponse, options: FilterOptions, now: datetime, fault: str = ""
) -> LeaderboardView:
    name = options.filters.get("q", "").casefold()
    rows = ranked_rows(found)
    shown = [row for row in rows if name in row.model.casefold()]
    baselines = [entry_row(entry) for entry in found.baselines]
    unranked = [entry_row(entry) for entry in found.unranked]
    first = rows[0] if rows else None
    return LeaderboardView(
        bands=[list(band) for _, band in groupby(shown, key=lambda row: row.place)],
        baselines=baselines,
        unranked=[row for row in unranked if name in row.model.casefold()],
        scale=Scale.of_figures(row.figure for row in (*rows[:1], *shown, *baselines)),
        first=first,
        listed=len(rows),
        total=found.total_models,
        metric=found.metric or options.filters.get("metric", "") or MAIN_METRICS[0],
        conditions=[present(ConditionShown, one) for one in found.conditions],
        warnings=leaderboard_warnings(found),
        note=found.note,
        pending=found.pending_comparisons,
        fault=fault,
        last_updated=moment(found.last_updated),
        path="/leaderboard",
        filters=options.filters,
        options=options,
        now=now,
        noise_floor=optional(found, "noise_floor"),
        repeated_runs=found.repeated_runs,
        less_is_better=found.less_is_better,
    )
