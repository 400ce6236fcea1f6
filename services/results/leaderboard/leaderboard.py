"""A leaderboard: which runs are ranked together, how they are ranked, and how a model moved.

A run gets the next rank once a paired test distinguishes it from the leader of the last one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations

from proctor.values.comparison import TrendDirection
from proctor.values.scoring import ScoringMethod
from services.results.comparison.comparison import StoredDifference
from services.results.leaderboard.closed_run import BenchmarkBaselines, BenchmarkFigure, ClosedRun
from services.results.leaderboard.conditions import EvaluationConditions
from services.results.statistics.figure import Figure
from services.results.statistics.paired.difference_estimate import LEVEL

# A position and a later position in the list, from 0.
Pair = tuple[int, int]

# By pair of runs; None where their comparison allows no test. Pairs not yet compared are absent.
PValues = Mapping[Pair, float | None]


def distinguishable(count: int, p_values: PValues) -> frozenset[Pair]:
    """Pairs of so many runs that differ at the 5 % level after Holm's correction over all pairs of the list.

    A pair without a p-value proves nothing, and counts in the correction as p = 1.
    """
    tests = count * (count - 1) // 2
    differing: list[Pair] = []
    # Step down from the smallest: a p-value above the level is never corrected below it.
    small = [
        (p_value, pair) for pair, p_value in p_values.items() if p_value is not None and p_value <= LEVEL
    ]
    for p_value, pair in sorted(small):
        if p_value * (tests - len(differing)) > LEVEL:
            break
        differing.append(pair)
    return frozenset(differing)


def ranks(count: int, differing: Collection[Pair]) -> list[int]:
    """Ranks of so many runs that are listed by their figure, the best one first.

    Going down the list, a run shares the rank of the leader (the first run of that rank) unless the two are
    distinguishable. Then it leads the next rank, whose number is its position. So a rank is shared with its
    leader, not between any two runs of it: `ties` gives the pairs that are really tied.
    """
    given: list[int] = []
    for position in range(count):
        leader = given[-1] - 1 if given else position
        given.append(position + 1 if leader == position or (leader, position) in differing else leader + 1)
    return given


def ties(count: int, p_values: PValues, differing: Collection[Pair]) -> list[list[int]]:
    """The other positions, by position, whose comparison with it shows no difference."""
    return _others(count, lambda pair: p_values.get(pair) is not None and pair not in differing)


def untested(count: int, p_values: PValues) -> list[list[int]]:
    """The other positions, by position, not yet compared with it, or whose comparison allows no test."""
    return _others(count, lambda pair: p_values.get(pair) is None)


def uncompared(given: list[int], p_values: PValues) -> list[Pair]:
    """Pairs of positions not yet compared: those with the leader of a rank first, then the nearest ones."""
    missing = [pair for pair in combinations(range(len(given)), 2) if pair not in p_values]
    return sorted(missing, key=lambda pair: (given[pair[1]] != pair[0] + 1, pair[1] - pair[0], pair))


def _others(count: int, is_wanted: Callable[[Pair], bool]) -> list[list[int]]:
    """The others, by position, in wanted pairs with it."""
    found: list[list[int]] = [[] for _ in range(count)]
    for first, second in filter(is_wanted, combinations(range(count), 2)):
        found[first].append(second)
        found[second].append(first)
    return [sorted(others) for others in found]


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
    """The latest run of a model under some conditions, or its best one.

    Its flawed runs are one, but for those that have no other flaw than a limit.
    """

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

    @property
    def can_be_ranked_as_limited(self) -> bool:
        """Whether it can be ranked with runs of the same limit."""
        return self.run.result.is_limited and self.figure.mean is not None


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """A model on a leaderboard or in a history. Rank 0: it is unranked. A baseline has no run.

    `tied_with`: listed models whose comparison with it shows no difference, of whatever rank;
    `not_compared_with`: those for which there is none, or none that allows a test.
    """

    model: str
    metric: str
    figure: BenchmarkFigure
    run: ClosedRun | None = None
    rank: int = 0
    tied_with: tuple[str, ...] = ()
    not_compared_with: tuple[str, ...] = ()
    trend: Trend | None = None
    is_selected_best: bool = False
    unranked_because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`total_models` counts all that are ranked, beyond `max_entries` too. `note`: why there are none.

    `pending`: pairs of entries that are still being compared.
    """

    metric: str
    scoring_method: ScoringMethod | None = None
    entries: Sequence[LeaderboardEntry] = ()
    unranked: Sequence[LeaderboardEntry] = ()
    baselines: Sequence[LeaderboardEntry] = ()
    total_models: int = 0
    last_updated: datetime | None = None
    note: str = ""
    pending: int = 0


def limited_note(benchmark: str, unranked: Sequence[Candidate]) -> str:
    """A sentence where all runs are limited; "" otherwise."""
    if not unranked or not all(one.run.result.is_limited for one in unranked):
        return ""
    limits = ", ".join(map(str, sorted({one.conditions.limit or 0 for one in unranked})))
    return (
        f"All runs of {benchmark} are limited to the first rows of each task (limit {limits}), so none is "
        "ranked. Include the limited runs to rank those of one limit."
    )


def choose_conditions(
    candidates: Sequence[Candidate],
    scoring_method: ScoringMethod | None,
    num_fewshot: int | None,
    *,
    includes_limited: bool = False,
) -> EvaluationConditions:
    """Conditions of ranked runs: the newest version of the suite; scored as asked, else as most are.

    Where several ways to score a data set are equally frequent, the way of the newest run is taken. Where
    limited runs are included, the limit is chosen in the same way.
    """
    whole = [one for one in candidates if one.can_be_ranked]
    if includes_limited:
        whole += [one for one in candidates if one.can_be_ranked_as_limited]
    whole = whole or list(candidates)
    version = max((one.conditions.suite_version for one in whole), default=0)
    newest_first = sorted(whole, key=lambda one: one.run.closed_at, reverse=True)
    known = [one.conditions for one in newest_first]
    alike = [one for one in known if (one.num_fewshot, one.suite_version) == (num_fewshot, version)]
    method = scoring_method or _most_frequent(one.scoring_method for one in alike or known)
    [(metrics, _)] = Counter(one.metrics for one in known).most_common(1) or [((), 0)]
    limits = Counter(one.limit for one in known) if includes_limited else Counter([None])
    [(limit, _)] = limits.most_common(1) or [(None, 0)]
    return EvaluationConditions(method, num_fewshot, version, limit, metrics=metrics)


def ranked_candidates(candidates: Iterable[Candidate], conditions: EvaluationConditions) -> list[Candidate]:
    """Candidates by figure, the best one first; equal ones by name."""
    ranked = [
        one
        for one in candidates
        if (one.can_be_ranked or one.can_be_ranked_as_limited) and one.conditions == conditions
    ]
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
    """An entry without its rank."""
    figure = one.run.result.figures[one.metric]
    return LeaderboardEntry(one.run.model, one.metric, figure, one.run, is_selected_best=not one.is_latest)


def unranked_entry(
    one: Candidate, conditions: EvaluationConditions, *, includes_limited: bool = False
) -> LeaderboardEntry:
    """`conditions` are those of the ranked runs."""
    result, differences = one.run.result, one.conditions.differences(conditions)
    if includes_limited:
        result = replace(result, conditions=replace(result.conditions, limit=None))
        differences = (one.conditions.limit_difference(conditions), *differences)
    undefined = f"{one.metric} is undefined" if one.figure.mean is None else ""
    reasons = (*differences, *result.flaws, undefined)
    return replace(entry_of(one), unranked_because=tuple(reason for reason in reasons if reason))


def baseline_entries(baselines: BenchmarkBaselines, metric: str) -> list[LeaderboardEntry]:
    return [
        LeaderboardEntry(f"baseline/{name}", metric, figures[metric])
        for name, figures in baselines.items()
        if metric in figures
    ]


def _most_frequent(methods: Iterable[ScoringMethod | None]) -> ScoringMethod | None:
    """The most frequent method; of equally frequent ones the first in the order of the contract."""
    counts = Counter(methods)
    return min(counts, key=lambda method: (-counts[method], method.number if method else 0), default=None)
