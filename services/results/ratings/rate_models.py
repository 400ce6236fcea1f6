"""Rates the models of a benchmark by the verdicts of judges on pairs of their answers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from services.results.ratings.judged_pairs import (
    AnswerStyle,
    ChosenJudgings,
    PairJudging,
    PairVerdict,
    choose_judgings,
)
from services.results.statistics.columns import Array, Numbers, numbered
from services.results.statistics.intervals import NORMAL_975
from services.results.statistics.judged.position_bias import position_bias, verdict_of_both_orders
from services.results.statistics.judged.ratings import POINTS, Matches, Ratings, rate, tied_ranks
from services.results.statistics.paired.difference_estimate import DifferenceEstimate

STYLES = ("length", "markup")


@dataclass(frozen=True, slots=True)
class RatingsQuery:
    """An empty `prompt` is that of the newest judging run, an empty `judge` is all judges."""

    benchmark: str
    prompt: str = ""
    judge: str = ""
    project_id: int | None = None
    is_style_controlled: bool = False


@dataclass(frozen=True, slots=True)
class RatedModel:
    """`rating` and its 95 % interval in points of Elo around a mean of 0; the counts are of pairs."""

    rank: int
    model: str
    rating: float
    ci_low: float
    ci_high: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class StyleEffect:
    """What a doubling adds to a rating, in points of Elo, with its 95 % interval."""

    name: str
    points: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True, slots=True)
class RatedModels:
    """`models` by rank. `unrated`: no chain of judged pairs joins them with these.

    `tie_odds` and `place` are None where no pair was judged.
    """

    chosen: ChosenJudgings
    models: Sequence[RatedModel] = ()
    unrated: Sequence[str] = ()
    matches: int = 0
    tie_odds: float | None = None
    place: DifferenceEstimate | None = None
    effects: Sequence[StyleEffect] = ()


class JudgedPairs(Protocol):
    """Judging runs of pairs, their verdicts, and the answers that they judge."""

    async def judgings(self, benchmark: str, project_id: int | None) -> Sequence[PairJudging]:
        """Newest first; without those of declared projects unless theirs are asked for."""
        ...

    async def verdicts(self, run_ids: Sequence[str]) -> Sequence[PairVerdict]: ...

    async def styles(self, run_ids: Sequence[str], *, has_style: bool) -> Sequence[AnswerStyle]:
        """Of all answers of judged runs that did not fail."""
        ...


@dataclass(frozen=True, slots=True)
class RateModels:
    pairs: JudgedPairs

    async def rate(self, query: RatingsQuery) -> RatedModels:
        found = await self.pairs.judgings(query.benchmark, query.project_id)
        chosen = choose_judgings(found, query.prompt, query.judge)
        if not chosen.judgings:
            return RatedModels(chosen)
        verdicts = await self.pairs.verdicts([one.run_id for one in chosen.judgings])
        judged = {run_id for one in chosen.judgings for run_id in (one.first_run_id, one.second_run_id)}
        styles = await self.pairs.styles(sorted(judged), has_style=query.is_style_controlled)
        return await asyncio.to_thread(
            _rated, chosen, verdicts, styles, is_style_controlled=query.is_style_controlled
        )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Row i: the models `first[i]` and `second[i]` by number, and the scores of the first in both orders.

    `styles` (pairs, 2 answers, styles) are logarithms to base 2. `prompts` numbers what both were asked.
    """

    models: Sequence[str]
    first: Numbers
    second: Numbers
    shown_first: Array
    shown_second: Array
    prompts: Numbers
    styles: Array

    def only(self, kept: Sequence[int]) -> "_Pairs":
        """The pairs of some models, which are numbered anew."""
        numbers = np.full(len(self.models), -1)
        numbers[list(kept)] = np.arange(len(kept))
        rows = np.flatnonzero(numbers[self.first] >= 0)
        return _Pairs(
            [self.models[at] for at in kept],
            numbers[self.first[rows]],
            numbers[self.second[rows]],
            self.shown_first[rows],
            self.shown_second[rows],
            numbered(self.prompts[rows]),
            self.styles[rows],
        )


def _rated(
    chosen: ChosenJudgings,
    verdicts: Sequence[PairVerdict],
    styles: Sequence[AnswerStyle],
    *,
    is_style_controlled: bool,
) -> RatedModels:
    found = _pairs(chosen.judgings, verdicts, styles)
    if not len(found.first):
        return RatedModels(chosen, unrated=found.models)
    kept = _joined(found)
    pairs = found.only(kept)
    results = verdict_of_both_orders(pairs.shown_first, pairs.shown_second)
    covariates = pairs.styles[:, 0] - pairs.styles[:, 1] if is_style_controlled else None
    matches = Matches(pairs.first, pairs.second, results, covariates, pairs.prompts)
    ratings = rate(matches, len(pairs.models))
    return RatedModels(
        chosen,
        _models(pairs.models, matches, ratings),
        [model for at, model in enumerate(found.models) if at not in set(kept)],
        len(results),
        ratings.tie,
        position_bias(pairs.shown_first, pairs.shown_second, pairs.prompts),
        list(map(_effect, STYLES, ratings.effects.tolist(), ratings.effect_errors.tolist())),
    )


def _pairs(
    judgings: Sequence[PairJudging], verdicts: Sequence[PairVerdict], styles: Sequence[AnswerStyle]
) -> _Pairs:
    """Without pairs of which an answer is gone, or has failed in a later epoch."""
    models = sorted({model for one in judgings for model in (one.first_model, one.second_model)})
    number = {model: at for at, model in enumerate(models)}
    by_run = {one.run_id: one for one in judgings}
    answers = {(one.run_id, one.sample, one.rollout): one for one in styles}
    rows = []
    for verdict in verdicts:
        judging = by_run[verdict.run_id]
        both = _both(answers, judging, verdict)
        if both is not None:
            rows.append((number[judging.first_model], number[judging.second_model], verdict, *both))
    digests = {digest: at for at, digest in enumerate({one.digest for *_, one, _ in rows})}
    logs = [[_logarithms(one), _logarithms(other)] for *_, one, other in rows]
    return _Pairs(
        models,
        np.array([first for first, *_ in rows], dtype=np.int64),
        np.array([second for _, second, *_ in rows], dtype=np.int64),
        np.array([verdict.shown_first for _, _, verdict, *_ in rows]),
        np.array([verdict.shown_second for _, _, verdict, *_ in rows]),
        np.array([digests[one.digest] for *_, one, _ in rows], dtype=np.int64),
        np.array(logs, dtype=np.float64).reshape(len(rows), 2, len(STYLES)),
    )


def _both(
    answers: Mapping[tuple[str, int, int], AnswerStyle], judging: PairJudging, verdict: PairVerdict
) -> tuple[AnswerStyle, AnswerStyle] | None:
    place = (verdict.sample, verdict.rollout)
    one = answers.get((judging.first_run_id, *place))
    other = answers.get((judging.second_run_id, *place))
    return (one, other) if one and other else None


def _logarithms(answer: AnswerStyle) -> Sequence[float]:
    """One more than the count: an empty answer and one without markup have none."""
    return [float(np.log2(1 + answer.characters)), float(np.log2(1 + answer.markup))]


def _joined(pairs: _Pairs) -> Sequence[int]:
    """The largest set of models of which each two are joined by a chain of pairs."""
    count = len(pairs.models)
    ones = np.ones(len(pairs.first))
    met = coo_array((ones, (pairs.first, pairs.second)), (count, count))
    _, parts = connected_components(met, directed=False)
    largest = int(np.bincount(parts).argmax())
    kept: list[int] = np.flatnonzero(parts == largest).tolist()
    return kept


def _models(names: Sequence[str], matches: Matches, ratings: Ratings) -> Sequence[RatedModel]:
    def counted(result: float) -> list[int]:
        """How often each model had it."""
        of_first = np.bincount(matches.first[matches.result == result], minlength=len(names))
        of_second = np.bincount(matches.second[matches.result == 1 - result], minlength=len(names))
        counts: list[int] = (of_first + of_second).tolist()
        return counts

    wins, ties, losses = (counted(result) for result in (1.0, 0.5, 0.0))
    rows = [
        RatedModel(
            rank, name, float(ratings.points[at]), *ratings.interval(at), wins[at], ties[at], losses[at]
        )
        for at, (name, rank) in enumerate(zip(names, tied_ranks(ratings), strict=True))
    ]
    return sorted(rows, key=lambda row: (row.rank, -row.rating, row.model))


def _effect(name: str, effect: float, error: float) -> StyleEffect:
    points, half = POINTS * effect, POINTS * NORMAL_975 * error
    return StyleEffect(name, points, points - half, points + half)
