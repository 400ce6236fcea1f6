"""Ratings from judging runs of pairs: which of them count, and what they give."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from services.results.ratings import judged_pairs
from services.results.ratings.judged_pairs import AnswerStyle, PairJudging, PairVerdict, choose_judgings
from services.results.ratings.rate_models import RatedModels, RateModels, RatingsQuery
from services.results.statistics.columns import Array
from services.results.statistics.judged.ratings import POINTS

MODELS = ("p/a", "p/b", "p/c")
# Logarithms of odds.
TRUE = dict(zip(MODELS, (0.8, 0.0, -0.8), strict=True))
PROMPTS = 400


def judging(run_id: str, first: str, second: str, judge: str = "p/judge", **changed: Any) -> PairJudging:
    """The runs of models are called as they are."""
    usual = PairJudging(
        run_id, judge, "preference", "1", "d1", 2 * PROMPTS, f"run {first}", first, f"run {second}", second
    )
    return replace(usual, **changed)


@dataclass
class StoredPairs:
    """In memory, as Postgres has them."""

    # ruff: noqa: ARG002  # parameters are those of the port

    found: Sequence[PairJudging]
    said: Sequence[PairVerdict]
    answers: Sequence[AnswerStyle]

    async def judgings(self, benchmark: str, project_id: int | None) -> Sequence[PairJudging]:
        return self.found

    async def verdicts(self, run_ids: Sequence[str]) -> Sequence[PairVerdict]:
        return [one for one in self.said if one.run_id in run_ids]

    async def styles(self, run_ids: Sequence[str], *, has_style: bool) -> Sequence[AnswerStyle]:
        return [one for one in self.answers if one.run_id in run_ids]


def drawn(judgings: Sequence[PairJudging], *, per_doubling: float = 0.0, place: float = 0.0) -> StoredPairs:
    """Verdicts by Davidson's model with odds of a tie of 1 : 2. The judge may like length, or a place."""
    generator = np.random.default_rng(7)
    lengths = {model: generator.integers(1, 4_000, PROMPTS) for model in MODELS}
    said = []
    for one in judgings:
        longer = np.log2(1 + lengths[one.first_model]) - np.log2(1 + lengths[one.second_model])
        eta = TRUE[one.first_model] - TRUE[one.second_model] + per_doubling * longer
        weights = np.exp(np.stack([eta / 2, np.full(PROMPTS, math.log(0.5)), -eta / 2], axis=1))
        chances = (weights / weights.sum(axis=1, keepdims=True)).cumsum(axis=1)
        results = 1 - (generator.random(PROMPTS)[:, np.newaxis] > chances).sum(axis=1) / 2
        leans = generator.random(PROMPTS) < place
        said += [
            PairVerdict(one.run_id, at, 0, 1.0 if leans[at] else result, 0.0 if leans[at] else result)
            for at, result in enumerate(results.tolist())
        ]
    answers = [
        AnswerStyle(f"run {model}", at, 0, b"%d" % at, int(length), 0)
        for model in MODELS
        for at, length in enumerate(lengths[model])
    ]
    return StoredPairs(judgings, said, answers)


ALL = [judging("j1", "p/a", "p/b"), judging("j2", "p/c", "p/b"), judging("j3", "p/a", "p/c")]


async def rated(pairs: StoredPairs, *, is_style_controlled: bool = False) -> RatedModels:
    return await RateModels(pairs).rate(RatingsQuery("glue", is_style_controlled=is_style_controlled))


def likelihood(parameters: Array, pairs: StoredPairs) -> float:
    """Davidson's formula with worths, pair by pair."""
    worth = dict(zip(MODELS, np.exp(np.append(0.0, parameters[:2])), strict=True))
    tie, by_run, total = math.exp(parameters[2]), {one.run_id: one for one in pairs.found}, 0.0
    for verdict in pairs.said:
        one = worth[by_run[verdict.run_id].first_model]
        other = worth[by_run[verdict.run_id].second_model]
        drawn_weight = tie * math.sqrt(one * other)
        result = verdict.shown_first if verdict.shown_first == verdict.shown_second else 0.5
        weight = {1.0: one, 0.5: drawn_weight, 0.0: other}[result]
        total -= math.log(weight / (one + other + drawn_weight))
    return total


async def test_ratings_are_the_maximum_of_davidsons_likelihood_whatever_side_a_model_is_on() -> None:
    pairs = drawn(ALL)
    found = await rated(pairs)
    best = optimize.minimize(likelihood, np.zeros(3), args=(pairs,), method="BFGS").x
    worths = np.append(0.0, best[:2])
    expected = dict(zip(MODELS, POINTS * (worths - worths.mean()), strict=True))
    assert {one.model: one.rating for one in found.models} == pytest.approx(expected, abs=1.0)
    assert found.tie_odds == pytest.approx(math.exp(best[2]), rel=0.01)
    assert [(one.rank, one.model) for one in found.models] == [(1, "p/a"), (2, "p/b"), (3, "p/c")]
    assert all(one.ci_low < one.rating < one.ci_high for one in found.models)
    assert found.matches == 3 * PROMPTS
    counts = [(one.wins, one.ties, one.losses) for one in found.models]
    assert [sum(of_model) for of_model in counts] == [2 * PROMPTS] * 3
    assert sum(wins for wins, *_ in counts) == sum(losses for *_, losses in counts)


async def test_style_control_takes_out_what_the_judge_gives_for_length() -> None:
    pairs = drawn(ALL, per_doubling=0.5)
    [length, markup] = (await rated(pairs, is_style_controlled=True)).effects
    assert (length.name, markup.name) == ("length", "markup")
    assert length.ci_low < POINTS * 0.5 < length.ci_high
    assert length.ci_low > 0
    # No answer has any markup.
    assert markup.points == pytest.approx(0.0, abs=1e-6)
    assert (await rated(pairs)).effects == []


async def test_orders_that_disagree_are_ties_and_show_the_bias() -> None:
    found = await rated(drawn(ALL, place=0.3))
    assert found.place is not None
    assert found.place.difference == pytest.approx(0.3, abs=0.03)
    assert found.place.p_value is not None
    assert found.place.p_value < 1e-5
    plain = await rated(drawn(ALL))
    assert sum(one.ties for one in found.models) > sum(one.ties for one in plain.models)


async def test_models_that_no_chain_of_pairs_joins_are_not_rated() -> None:
    apart = judging("j4", "p/d", "p/e")
    pairs = drawn(ALL)
    said = [*pairs.said, PairVerdict("j4", 0, 0, 1.0, 1.0)]
    answers = [AnswerStyle(f"run {model}", 0, 0, b"0", 9, 0) for model in ("p/d", "p/e")]
    joined = StoredPairs([*ALL, apart], said, [*pairs.answers, *answers])
    found = await rated(joined)
    assert found.unrated == ["p/d", "p/e"]
    assert {one.model: one.rating for one in found.models} == pytest.approx(
        {one.model: one.rating for one in (await rated(pairs)).models}
    )


async def test_without_judged_pairs_nothing_is_rated() -> None:
    assert await rated(StoredPairs([], [], [])) == RatedModels(choose_judgings([], "", ""))
    # The answers are deleted.
    found = await rated(StoredPairs(ALL, drawn(ALL).said, []))
    assert (found.models, found.unrated, found.matches) == ((), list(MODELS), 0)


def test_of_each_judge_and_two_models_the_newest_run_of_the_newest_prompt_counts() -> None:
    newest = judging("new", "p/b", "p/a", digest="d2")
    other = judging("other judge", "p/a", "p/b", "p/judge2", digest="d2")
    twice = judging("older", "p/a", "p/b", digest="d2")
    changed = judging("before the prompt changed", "p/a", "p/c")
    style = judging("style", "p/a", "p/b", prompt="style_of_two", digest="d3")
    itself = judging("one model", "p/a", "p/a", digest="d2")
    found = [newest, itself, style, other, twice, changed]
    chosen = choose_judgings(found, "", "")
    assert [one.run_id for one in chosen.judgings] == ["new", "other judge"]
    assert chosen.other_prompts == ["style_of_two"]
    assert [one.run_id for one in choose_judgings(found, "style_of_two", "").judgings] == ["style"]
    assert [one.run_id for one in choose_judgings(found, "", "p/judge2").judgings] == ["other judge"]
    none = choose_judgings(found, "unknown", "")
    assert (none.judgings, none.other_prompts) == ((), ["preference", "style_of_two"])


def test_one_rating_takes_so_many_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_pairs, "MAX_VERDICTS", 4 * PROMPTS)
    chosen = choose_judgings(ALL, "", "")
    assert ([one.run_id for one in chosen.judgings], chosen.left_out) == (["j1", "j2"], 1)
