"""A leaderboard: which runs are ranked together, why others are unranked, and how a model moved."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from proctor.values.comparison import TrendDirection
from proctor.values.scoring import ScoringMethod
from services.results.comparison.comparison import StoredDifference
from services.results.leaderboard.closed_run import ClosedRun, SuiteBaselines, SuiteFigure
from services.results.leaderboard.conditions import EvaluationConditions
from services.results.statistics.figure import Figure
from services.results.statistics.paired.estimate import LEVEL


@dataclass(frozen=True, slots=True)
class Trend:
    """Present minus previous; without a direction as long as the two are not compared."""

    previous_run_id: str
    direction: TrendDirection | None = None
    difference: float | None = None
    p_value: float | None = None


def trend_of(previous_run_id: str, stored: StoredDifference | None) -> Trend | None:
    """`stored`: present minus previous. There is one test per model, chosen in advance: no correction."""
    if not previous_run_id:
        return None
    if stored is None or stored.difference is None or stored.p_value is None:
        return Trend(previous_run_id)
    moved = TrendDirection.UP if stored.difference > 0 else TrendDirection.DOWN
    direction = moved if stored.p_value <= LEVEL else TrendDirection.STEADY
    return Trend(previous_run_id, direction, stored.difference, stored.p_value)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The latest run of a model under some conditions, or its best one; all its flawed runs are one."""

    run: ClosedRun
    metric: str
    previous_run_id: str = ""
    is_latest: bool = True

    @property
    def conditions(self) -> EvaluationConditions:
        return self.run.result.conditions.of_metric(self.metric)

    @property
    def figure(self) -> Figure:
        return self.run.result.figures[self.metric].figure

    @property
    def can_be_ranked(self) -> bool:
        return self.run.result.is_whole and self.figure.mean is not None


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """A model on a leaderboard or in a history. Rank 0: it is unranked. A baseline has no run.

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
class Leaderboard:
    """`total_models` counts all that are ranked, beyond the limit too."""

    metric: str
    scoring_method: ScoringMethod | None = None
    entries: Sequence[LeaderboardEntry] = ()
    unranked: Sequence[LeaderboardEntry] = ()
    baselines: Sequence[LeaderboardEntry] = ()
    total_models: int = 0
    last_updated: datetime | None = None


def choose_conditions(
    candidates: Sequence[Candidate], scoring_method: ScoringMethod | None, num_fewshot: int | None
) -> EvaluationConditions:
    """What ranked runs have in common: the newest version of the suite; scored as asked, else as most are.

    Of several ways to score a data set that are as frequent, the one of the newest run.
    """
    whole = [one for one in candidates if one.can_be_ranked] or candidates
    version = max((one.conditions.suite_version for one in whole), default=0)
    newest_first = sorted(whole, key=lambda one: one.run.closed_at, reverse=True)
    known = [one.conditions for one in newest_first]
    alike = [one for one in known if (one.num_fewshot, one.suite_version) == (num_fewshot, version)]
    method = scoring_method or _most_frequent(one.scoring_method for one in alike or known)
    [(metrics, _)] = Counter(one.metrics for one in known).most_common(1) or [((), 0)]
    return EvaluationConditions(method, num_fewshot, version, metrics=metrics)


def ranked_candidates(candidates: Iterable[Candidate], conditions: EvaluationConditions) -> list[Candidate]:
    """By figure, the best one first; equal ones by name."""
    ranked = [one for one in candidates if one.can_be_ranked and one.conditions == conditions]
    return sorted(ranked, key=lambda one: (-(one.figure.mean or 0.0), one.run.model))


def unranked_candidates(candidates: Iterable[Candidate], ranked: Iterable[Candidate]) -> list[Candidate]:
    """The newest run of each model that has none among the ranked."""
    models = {one.run.model for one in ranked}
    newest: dict[str, Candidate] = {}
    for one in sorted(candidates, key=lambda one: (one.run.closed_at, one.run.run_id)):
        if one.run.model not in models:
            newest[one.run.model] = one
    return sorted(newest.values(), key=lambda one: one.run.model)


def entry_of(one: Candidate) -> LeaderboardEntry:
    """Without its rank."""
    figure = one.run.result.figures[one.metric]
    return LeaderboardEntry(one.run.model, one.metric, figure, one.run, is_selected_best=not one.is_latest)


def unranked_entry(one: Candidate, conditions: EvaluationConditions) -> LeaderboardEntry:
    undefined = (f"{one.metric} is undefined",) if one.figure.mean is None else ()
    reasons = (*one.conditions.differences(conditions), *one.run.result.flaws, *undefined)
    return replace(entry_of(one), unranked_because=reasons)


def baseline_entries(baselines: SuiteBaselines, metric: str) -> list[LeaderboardEntry]:
    return [
        LeaderboardEntry(f"baseline/{name}", metric, figures[metric])
        for name, figures in baselines.items()
        if metric in figures
    ]


def _most_frequent(methods: Iterable[ScoringMethod | None]) -> ScoringMethod | None:
    """The most frequent method; of equally frequent ones the first in the order of the contract."""
    counts = Counter(methods)
    return min(counts, key=lambda method: (-counts[method], method.number if method else 0), default=None)
