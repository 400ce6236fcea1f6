"""Ratings from pairs, and the bias of a judge to a place."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import binomtest

from services.results.statistics.columns import Array
from services.results.statistics.judged.position_bias import position_bias, verdict_of_both_orders
from services.results.statistics.judged.ratings import POINTS, Matches, Ratings, rate, tied_ranks

TRUE = np.array([1.0, 0.3, 0.3, -1.6])
LONGER = 0.8


def drawn(generator: np.random.Generator, prompts: int, *, tie: float = 0.5, longer: float = 0.0) -> Matches:
    """Every pair of the models meets once on each prompt; some verdicts follow the prompt, not the models."""
    first, second = np.triu_indices(len(TRUE), 1)
    first, second = np.tile(first, prompts), np.tile(second, prompts)
    lengths = generator.normal(0, 1, len(first))
    shared = np.repeat(generator.normal(0, 0.5, (prompts, len(TRUE))), 6, axis=0)
    rows = np.arange(len(first))
    eta = TRUE[first] - TRUE[second] + longer * lengths + shared[rows, first] - shared[rows, second]
    weights = np.exp(np.stack([eta / 2, np.full(len(eta), math.log(tie)), -eta / 2], axis=1))
    chances = weights / weights.sum(axis=1, keepdims=True)
    outcome = (generator.random(len(eta))[:, np.newaxis] > chances.cumsum(axis=1)).sum(axis=1)
    clusters = np.repeat(np.arange(prompts), 6)
    return Matches(first, second, 1 - outcome / 2, lengths[:, np.newaxis] if longer else None, clusters)


def likelihood(parameters: Array, matches: Matches) -> float:
    """Davidson's formula as it is in the paper, with worths instead of their logarithms."""
    worth, tie = np.exp(np.append(0.0, parameters[:3])), math.exp(parameters[3])
    one, other = worth[matches.first], worth[matches.second]
    total = one + other + tie * np.sqrt(one * other)
    chances = np.where(
        matches.result == 1, one, np.where(matches.result == 0, other, tie * np.sqrt(one * other))
    )
    return -float(np.log(chances / total).sum())


def test_ratings_are_the_maximum_of_davidsons_likelihood() -> None:
    matches = drawn(np.random.default_rng(1), 3_000)
    found = rate(matches, 4)
    best = optimize.minimize(likelihood, np.zeros(4), args=(matches,), method="BFGS").x
    worths = np.append(0.0, best[:3])
    np.testing.assert_allclose(found.points / POINTS, worths - worths.mean(), atol=2e-3)
    assert found.tie == pytest.approx(math.exp(best[3]), rel=2e-3)
    assert found.points.sum() == pytest.approx(0.0, abs=1e-9)


def test_errors_are_those_of_redrawn_prompts() -> None:
    generator = np.random.default_rng(2)
    many = np.array([rate(drawn(generator, 150), 4).points for _ in range(200)])
    stated = rate(drawn(generator, 2_000), 4).covariance * 2_000 / 150
    np.testing.assert_allclose(many.std(axis=0), np.sqrt(np.diag(stated)), rtol=0.2)
    differences = many[:, 0] - many[:, 3]
    of_difference = stated[0, 0] + stated[3, 3] - 2 * stated[0, 3]
    assert differences.std() == pytest.approx(math.sqrt(of_difference), rel=0.2)


def test_covariates_take_what_style_adds() -> None:
    generator = np.random.default_rng(3)
    matches = drawn(generator, 4_000, longer=LONGER)
    found = rate(matches, 4)
    # The spread of prompts, which no model sees, draws all logarithms of odds a little to 0.
    assert found.effects[0] == pytest.approx(LONGER, rel=0.12)
    assert found.effects[0] / found.effect_errors[0] > 10
    low, high = found.interval(0)
    assert low < found.points[0] < high


def test_a_model_that_always_wins_has_a_finite_rating() -> None:
    first, second = np.zeros(30, dtype=np.int64), np.ones(30, dtype=np.int64)
    found = rate(Matches(first, second, np.ones(30)), 2)
    assert 200 < found.points[0] < 2_000
    assert found.points[0] == pytest.approx(-found.points[1])
    assert np.isfinite(found.covariance).all()


def test_ranks_are_shared_where_the_test_tells_no_difference() -> None:
    assert list(tied_ranks(rate(drawn(np.random.default_rng(4), 1_500), 4))) == [1, 2, 2, 4]
    points = np.array([30.0, 20.0, 0.0])
    covariance = np.diag([50.0, 50.0, 50.0])
    # The second is not told from the first, the third is: by 3 standard errors.
    assert list(tied_ranks(Ratings(points, covariance, 1.0, np.empty(0), np.empty(0), covariance))) == [
        1,
        1,
        3,
    ]


def test_models_whose_pairs_all_end_alike_are_as_uncertain_as_their_number_says() -> None:
    """All residuals of a pair are the same then: the sandwich alone would be sure of anything."""
    first, second = np.zeros(40, dtype=np.int64), np.ones(40, dtype=np.int64)
    tied = rate(Matches(first, second, np.full(40, 0.5)), 2)
    assert list(tied_ranks(tied)) == [1, 1]
    assert tied.interval(0)[1] - tied.interval(0)[0] > 100
    won = rate(Matches(first[:3], second[:3], np.ones(3)), 2)
    assert list(tied_ranks(won)) == [1, 1]


def both_orders(generator: np.random.Generator, pairs: int, bias: float) -> tuple[Array, Array]:
    """Verdicts for the same answer, first and second; a share of verdicts names the first place."""
    wins = (generator.random(pairs) < 0.5) * 1.0
    noisy = [np.where(generator.random(pairs) < 0.15, 1 - wins, wins) for _ in range(2)]
    biased = [generator.random(pairs) < bias for _ in range(2)]
    return np.where(biased[0], 1.0, noisy[0]), np.where(biased[1], 0.0, noisy[1])


def test_the_bias_to_a_place_is_mcnemars_difference_of_the_orders() -> None:
    first, second = both_orders(np.random.default_rng(5), 200, 0.2)
    found = position_bias(first, second)
    ups, downs = int((first > second).sum()), int((first < second).sum())
    assert found.difference == pytest.approx((ups - downs) / 200)
    assert found.p_value == pytest.approx(binomtest(ups, ups + downs).pvalue)
    assert verdict_of_both_orders(np.array([1, 1, 0, 0.5]), np.array([1, 0, 0, 0.5])).tolist() == [
        1,
        0.5,
        0,
        0.5,
    ]


def found_share(judges: int, bias: float) -> float:
    generator, found = np.random.default_rng(6), 0
    for _ in range(judges):
        p_value = position_bias(*both_orders(generator, 300, bias)).p_value
        assert p_value is not None
        found += p_value <= 0.05
    return found / judges


def test_a_planted_bias_is_found_and_none_where_there_is_none() -> None:
    assert found_share(300, 0.15) >= 0.95
    assert found_share(300, 0.0) <= 0.08


@pytest.mark.thorough
def test_the_same_over_ten_thousand_judges() -> None:
    assert found_share(10_000, 0.15) >= 0.95
    assert found_share(10_000, 0.0) <= 0.05
