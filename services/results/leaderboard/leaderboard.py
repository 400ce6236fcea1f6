"""A leaderboard: which runs are ranked together, how they are ranked, and how a model moved.

A run gets the next rank once a paired test distinguishes it from the leader of the last one.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import combinations

from proctor.values.comparison import TrendDirection
from proctor.values.scoring import ScoringMethod
from services.results.comparison.comparison import StoredDifference
from services.results.leaderboard.closed_run import BenchmarkBaselines, BenchmarkFigure, ClosedRun
from services.results.leaderboard.conditions import EvaluationConditions
from services.results.runs.conditions import (
    CONDITIONS,
    DEFINITION,
    LIMIT,
    SCORING_METHOD,
    SHOTS,
    SUITE_VERSION,
)
from services.results.statistics.figure import Figure
from services.results.statistics.paired.difference_estimate import LEVEL
from services.results.statistics.variance_split import RepetitionSpread

# Ranked runs have those of the newest run, however many have others.
_NEWEST = (SUITE_VERSION, DEFINITION)

# Values up to this length stand in the sentence that says what partial runs lack.
_SHORT_CHARACTERS = 60
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
    """The latest run of a model under some conditions, or its best one. Its failing runs are one.

    `run_count`: how many completed runs it was chosen of; MAX_COUNTED + 1 where they are more.
    """

    run: ClosedRun
    metric: str
    previous_run_id: str = ""
    is_latest: bool = True
    run_count: int = 1

    @property
    def conditions(self) -> EvaluationConditions:
        return self.run.result.conditions.of_metric(self.metric)

    @property
    def figure(self) -> Figure:
        return self.run.result.figures[self.metric].figure

    @property
    def worth(self) -> float:
        """By which it is ranked: the figure, or its negative where less is better."""
        return self.run.result.worth(self.metric)

    @property
    def can_be_ranked(self) -> bool:
        """Whether it is ranked where its conditions are asked for."""
        return not self.run.result.failing and self.figure.mean is not None

    def is_ranked_unasked(self, *, includes_limited: bool) -> bool:
        result = self.run.result
        return self.can_be_ranked and (result.is_whole or (includes_limited and result.is_limited))


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """A model on a leaderboard or in a history. Rank 0: it is unranked. A baseline has no run.

    `tied_with`: listed models whose comparison with it shows no difference, of whatever rank;
    `not_compared_with`: those for which there is none, or none that allows a test. `run_count`: the completed
    runs of the model under its conditions; 0 in a history.
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
    run_count: int = 0


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """`total_models` counts all that are ranked, beyond `max_entries` too. `note`: why partial runs are.

    `conditions` are those of the ranked runs. `pending`: pairs of entries that are still being compared.
    `spread` of the entries' runs and their repetitions; None where none was repeated. `less_is_better`: of
    the metric.
    """

    metric: str
    conditions: EvaluationConditions = field(default_factory=EvaluationConditions)
    entries: Sequence[LeaderboardEntry] = ()
    unranked: Sequence[LeaderboardEntry] = ()
    baselines: Sequence[LeaderboardEntry] = ()
    total_models: int = 0
    last_updated: datetime | None = None
    note: str = ""
    pending: int = 0
    spread: RepetitionSpread | None = None
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class AskedConditions:
    """Conditions that a reader asks for by name. Unset: those of most models, with each task's own shots.

    `includes_limited`: the limit is chosen too, as that of most models.
    """

    scoring_method: ScoringMethod | None = None
    num_fewshot: int | None = None
    includes_limited: bool = False

    @property
    def values(self) -> Mapping[str, str]:
        shots = {} if self.num_fewshot is None else {SHOTS: str(self.num_fewshot)}
        return {**shots, **({SCORING_METHOD: self.scoring_method} if self.scoring_method else {})}

    @property
    def allowed_flaws(self) -> frozenset[str]:
        return frozenset({LIMIT} if self.includes_limited else ())

    def among(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The candidates that are as asked; where no shots are asked for, any if none has its task's own."""
        alike = [one for one in candidates if self.scoring_method in (None, one.conditions.scoring_method)]
        of_shots = [one for one in alike if one.conditions.num_fewshot == self.num_fewshot]
        return alike if not of_shots and self.num_fewshot is None else of_shots


def choose_conditions(candidates: Sequence[Candidate], asked: AskedConditions) -> EvaluationConditions:
    """Conditions of ranked runs: those that are asked for, else those of most models, with all rows.

    Where no run that is as asked is whole, they are those that most of the partial ones share.
    """
    usual = [one for one in candidates if one.is_ranked_unasked(includes_limited=asked.includes_limited)]
    whole = asked.among(usual)
    partial = () if whole else asked.among(_partial(candidates))
    if partial:
        return _most_frequent(partial)
    found = _most_frequent(whole or usual or asked.among(candidates) or candidates)
    needed = {one.name: one.usual[0] for one in CONDITIONS if one.is_needed}
    if asked.includes_limited:
        del needed[LIMIT]
    return found.with_values({**needed, **asked.values})


def partial_note(benchmark: str, conditions: EvaluationConditions, asked: AskedConditions) -> str:
    """A sentence where the ranked runs lack something that was not asked for; "" where they are whole."""
    lacks = [_lack(name, conditions.value(name)) for name in conditions.flaws]
    if not lacks or asked.allowed_flaws.issuperset(conditions.flaws):
        return ""
    such = "such run" if asked.values else "run"
    return f"No {such} of {benchmark} is whole, so partial runs are ranked: {', '.join(lacks)}."


def _lack(condition: str, value: str) -> str:
    """A list of many tasks is left to the conditions."""
    return f"{condition} {value}" if len(value) <= _SHORT_CHARACTERS else condition


def _partial(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Those that can be ranked; runs that another tool asked and scored only where there are no others."""
    ranked = [one for one in candidates if one.can_be_ranked]
    return [one for one in ranked if not one.run.result.is_imported] or ranked


def _most_frequent(candidates: Sequence[Candidate]) -> EvaluationConditions:
    """Those of most models, with the newest version of the suite and the definition of the newest run.

    Of equally frequent ones those of which orders chose least by themselves, then those of the newest run.
    """
    if not candidates:
        return EvaluationConditions()
    newest = max(candidates, key=lambda one: (int(one.conditions.value(SUITE_VERSION)), one.run.closed_at))
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for one in candidates:
        if all(one.conditions.value(name) == newest.conditions.value(name) for name in _NEWEST):
            groups.setdefault(one.conditions.between_models, []).append(one)
    chosen = max(
        groups.values(),
        key=lambda alike: (
            len({one.run.model for one in alike}),
            -alike[0].conditions.unusual_count,
            max(one.run.closed_at for one in alike),
        ),
    )
    return chosen[0].conditions


def ranked_candidates(
    candidates: Iterable[Candidate], conditions: EvaluationConditions, *, is_best: bool
) -> list[Candidate]:
    """The newest candidate of each model under the conditions, or the best, by figure; equal ones by name.

    A model has several where its engine reports another template or quantization.
    """
    by_model: dict[str, Candidate] = {}
    for one in sorted(candidates, key=lambda one: _worth(one, is_best=is_best)):
        if one.can_be_ranked and one.conditions.between_models == conditions.between_models:
            by_model[one.run.model] = one
    return sorted(by_model.values(), key=lambda one: (-one.worth, one.run.model))


def _worth(one: Candidate, *, is_best: bool) -> tuple[float, datetime, str]:
    return (one.worth if is_best else -math.inf), one.run.closed_at, one.run.run_id


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
    return LeaderboardEntry(
        one.run.model,
        one.metric,
        figure,
        one.run,
        is_selected_best=not one.is_latest,
        run_count=one.run_count,
    )


def unranked_entry(one: Candidate, conditions: EvaluationConditions) -> LeaderboardEntry:
    """`conditions` are those of the ranked runs."""
    undefined = f"{one.metric} is undefined" if one.figure.mean is None else ""
    reasons = (*one.conditions.differences(conditions), one.run.result.failing, undefined)
    return replace(entry_of(one), unranked_because=tuple(reason for reason in reasons if reason))


def baseline_entries(baselines: BenchmarkBaselines, metric: str) -> list[LeaderboardEntry]:
    return [
        LeaderboardEntry(f"baseline/{name}", metric, figures[metric])
        for name, figures in baselines.items()
        if metric in figures
    ]
