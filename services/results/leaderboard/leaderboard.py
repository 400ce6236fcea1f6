"""A leaderboard: which runs are ranked together, why others are unranked, and how a model moved."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

from proctor.values.scoring import ScoringMethod
from services.results.comparison.comparison import StoredDifference
from services.results.leaderboard.closed_run import ClosedRun, SuiteBaselines, SuiteFigure
from services.results.leaderboard.conditions import RunTerms
from services.results.statistics.figure import Figure
from services.results.statistics.paired.estimate import LEVEL


class TrendDirection(IntEnum):
    """The numbers are those of the contract."""

    UNSPECIFIED = 0
    UP = 1
    DOWN = 2
    STEADY = 3


@dataclass(frozen=True, slots=True)
class Trend:
    """Present minus previous; without a direction as long as the two are not compared."""

    previous_run_id: str
    direction: TrendDirection = TrendDirection.UNSPECIFIED
    difference: float | None = None
    p_value: float | None = None


def trend_of(previous_run_id: str, stored: StoredDifference | None) -> Trend | None:
    """`stored`: present minus previous. One test per model that nobody picked: no correction."""
    if not previous_run_id:
        return None
    if stored is None or stored.difference is None or stored.p_value is None:
        return Trend(previous_run_id)
    moved = TrendDirection.UP if stored.difference > 0 else TrendDirection.DOWN
    direction = moved if stored.p_value <= LEVEL else TrendDirection.STEADY
    return Trend(previous_run_id, direction, stored.difference, stored.p_value)


@dataclass(frozen=True, slots=True)
class BoardEntry:
    """The latest run of a model on some terms, or its best one; flawed runs of a model share one entry."""

    run: ClosedRun
    metric: str
    previous_run_id: str = ""
    is_latest: bool = True

    @property
    def terms(self) -> RunTerms:
        return self.run.standing.terms.of_metric(self.metric)

    @property
    def figure(self) -> Figure:
        return self.run.standing.figures[self.metric].figure

    @property
    def can_be_ranked(self) -> bool:
        return self.run.standing.is_whole and self.figure.mean is not None


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """A model on a board. Rank 0: it is listed apart. A baseline has no run.

    `tied_with`: listed models whose comparison with it shows no difference, of whatever rank;
    `not_compared_with`: those for which there is none, or none that allows a test.
    """

    model: str
    metric: str
    figure: SuiteFigure
    run: ClosedRun | None = None
    rank: int = 0
    tied_with: tuple[str, ...] = ()
    not_compared_with: tuple[str, ...] = ()
    trend: Trend | None = None
    is_selected_best: bool = False
    unranked_because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """`total_models` counts all that are ranked, beyond the limit too."""

    metric: str
    scoring_method: ScoringMethod | None = None
    standings: Sequence[LeaderboardEntry] = ()
    apart: Sequence[LeaderboardEntry] = ()
    baselines: Sequence[LeaderboardEntry] = ()
    total_models: int = 0
    last_updated: datetime | None = None


def choose_terms(
    entries: Sequence[BoardEntry], scoring_method: ScoringMethod | None, num_fewshot: int | None
) -> RunTerms:
    """What ranked runs agree on: the newest version of the suite; scored as asked, else as most are.

    Of several ways to score a data set that are as frequent, the one of the newest run.
    """
    whole = [entry for entry in entries if entry.can_be_ranked] or entries
    version = max((entry.terms.suite_version for entry in whole), default=0)
    asked_alike = [
        one for one in whole if (one.terms.num_fewshot, one.terms.suite_version) == (num_fewshot, version)
    ]
    method = scoring_method or _most_frequent(one.terms.scoring_method for one in asked_alike or whole)
    newest_first = sorted(whole, key=lambda one: one.run.closed_at, reverse=True)
    [(metrics, _)] = Counter(one.terms.metrics for one in newest_first).most_common(1) or [((), 0)]
    return RunTerms(method, num_fewshot, version, metrics=metrics)


def ranked_entries(entries: Iterable[BoardEntry], terms: RunTerms) -> list[BoardEntry]:
    """By figure, the best one first; equal ones by name."""
    ranked = [entry for entry in entries if entry.can_be_ranked and entry.terms == terms]
    return sorted(ranked, key=lambda entry: (-(entry.figure.mean or 0.0), entry.run.model))


def entries_apart(entries: Iterable[BoardEntry], ranked: Iterable[BoardEntry]) -> list[BoardEntry]:
    """The newest run of each model that has none among the ranked."""
    models = {entry.run.model for entry in ranked}
    newest: dict[str, BoardEntry] = {}
    for entry in sorted(entries, key=lambda entry: (entry.run.closed_at, entry.run.run_id)):
        if entry.run.model not in models:
            newest[entry.run.model] = entry
    return sorted(newest.values(), key=lambda entry: entry.run.model)


def standing_on_board(entry: BoardEntry) -> LeaderboardEntry:
    """As yet without rank."""
    figure = entry.run.standing.figures[entry.metric]
    return LeaderboardEntry(
        entry.run.model, entry.metric, figure, entry.run, is_selected_best=not entry.is_latest
    )


def standing_apart(entry: BoardEntry, terms: RunTerms) -> LeaderboardEntry:
    undefined = (f"{entry.metric} is undefined",) if entry.figure.mean is None else ()
    reasons = (*entry.terms.differences(terms), *entry.run.standing.flaws, *undefined)
    return replace(standing_on_board(entry), unranked_because=reasons)


def baseline_standings(baselines: SuiteBaselines, metric: str) -> list[LeaderboardEntry]:
    return [
        LeaderboardEntry(f"baseline/{name}", metric, figures[metric])
        for name, figures in baselines.items()
        if metric in figures
    ]


def _most_frequent(methods: Iterable[ScoringMethod | None]) -> ScoringMethod | None:
    """Of several that are as frequent, the first in the order of the contract."""
    counts = Counter(methods)
    return min(counts, key=lambda method: (-counts[method], method.number if method else 0), default=None)
