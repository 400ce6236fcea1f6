"""Sequential tests: the mixture over discordant pairs, their level at every look, and what they save."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.sequential.betting import (
    PRIOR,
    ConfidenceSequence,
    SequentialVerdict,
    confidence_sequence,
    log_capital,
)

KINDS = np.array([1.0, 0.0, -1.0])
SHARD, SHARDS = 100, 50
NEEDED = math.log(2 / 0.05)


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (12, 5), (5, 12), (60, 30)])
def test_without_a_margin_it_is_a_beta_mixture_over_the_discordant_pairs(won: int, lost: int) -> None:
    """The chance of the pairs if more than half are won, over the one if half are, by another integration."""

    def ratio(chance: float) -> float:
        return float(beta.pdf(chance, PRIOR, PRIOR) * 2 * (2 * chance) ** won * (2 - 2 * chance) ** lost)

    found = log_capital(KINDS, np.array([won, 1_000, lost]), 0.0)
    assert found == pytest.approx(math.log(quad(ratio, 0.5, 1)[0]), abs=0.01)


def test_bets_are_products_of_what_each_difference_pays() -> None:
    differences = np.array([0.4, -0.2, 0.05])
    one_by_one = [log_capital(differences[:n], np.ones(n, dtype=np.int64), 0.1) for n in (1, 2, 3)]
    together = log_capital(differences, np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]]), 0.1)
    np.testing.assert_allclose(one_by_one, together)
    # A fair game: over two equally likely differences with this mean, the expected capital stays 1.
    fair = np.array([0.6, -0.4])
    capital = np.exp(log_capital(fair, np.eye(2, dtype=np.int64), 0.1))
    assert capital.mean() == pytest.approx(1.0)


def test_an_interval_ends_where_its_bets_reach_what_refutes() -> None:
    counts = np.array([90, 860, 50])
    found = confidence_sequence(KINDS, counts)
    assert log_capital(KINDS, counts, found.low) == pytest.approx(NEEDED, abs=1e-4)
    assert log_capital(-KINDS, counts, -found.high) == pytest.approx(NEEDED, abs=1e-4)
    assert found.low < 0.04 < found.high
    other = confidence_sequence(KINDS, counts[::-1])
    assert (other.low, other.high) == pytest.approx((-found.high, -found.low))
    assert confidence_sequence(KINDS, np.zeros(3, dtype=np.int64)) == ConfidenceSequence(-1.0, 1.0)
    # Points of a hundred have a hundred times the interval.
    hundred = confidence_sequence(100 * KINDS, counts, width=100)
    assert hundred.low == pytest.approx(100 * found.low)


def test_it_decides_for_a_side_for_equivalence_or_not_yet() -> None:
    decided = [
        confidence_sequence(KINDS, np.array(counts)).verdict(0.02)
        for counts in ((200, 800, 50), (50, 800, 200), (60, 20_000, 60), (60, 800, 50))
    ]
    assert decided == list(SequentialVerdict)
    assert confidence_sequence(KINDS, np.array([60, 20_000, 60])).verdict() is SequentialVerdict.UNDECIDED


def looks(runs: int, difference: float, *, differing: float = 0.15, seed: int = 8) -> Numbers:
    """Counts of pairs won, equal and lost after each shard: (runs, shards, 3)."""
    won, lost = (differing + difference) / 2, (differing - difference) / 2
    generator = np.random.default_rng(seed)
    return generator.multinomial(SHARD, [won, 1 - won - lost, lost], (runs, SHARDS)).cumsum(axis=1)


def first_decided(counts: Numbers, kinds: Array = KINDS) -> Array:
    """Number of shards at the first look that shows a side, or all of them; and whether any look did."""
    is_shown = (log_capital(kinds, counts, 0.0) >= NEEDED) | (log_capital(-kinds, counts, 0.0) >= NEEDED)
    return np.where(is_shown.any(axis=1), is_shown.argmax(axis=1) + 1, np.inf)


def check_rates(runs: int, tolerance: float) -> None:
    """The figures of docs/reference/statistics.md."""
    for differing in (0.05, 0.15, 0.4):
        false = np.isfinite(first_decided(looks(runs, 0.0, differing=differing))).mean()
        assert false <= 0.05 + tolerance
    counts = looks(runs, 0.03)
    stopped = first_decided(counts)
    at = np.minimum(stopped, SHARDS).astype(np.int64)
    assert 1 - at.mean() / SHARDS >= 0.4
    assert np.isfinite(stopped).mean() >= 0.95
    # Whether the interval at the stop covers the true difference.
    last = counts[np.arange(runs), at - 1]
    misses = (log_capital(KINDS, last, 0.03) >= NEEDED) | (log_capital(-KINDS, last, -0.03) >= NEEDED)
    assert 1 - misses.mean() >= 0.95 - tolerance


def test_looks_at_every_shard_keep_the_level_and_save_samples() -> None:
    check_rates(500, tolerance=0.01)


@pytest.mark.thorough
def test_the_same_over_ten_thousand_runs() -> None:
    check_rates(10_000, tolerance=0.0)


def test_graded_scores_keep_the_level_too() -> None:
    """Skewed differences whose mean is 0, at every sample."""
    generator, false = np.random.default_rng(9), 0
    for _ in range(300):
        differences = np.where(generator.random(400) < 0.2, 0.8, -0.2)
        upper = np.tril(np.ones((400, 400), dtype=np.int64))[::20]
        capital = [log_capital(side * differences, upper, 0.0).max() for side in (1, -1)]
        false += max(capital) >= NEEDED
    assert false / 300 <= 0.07
