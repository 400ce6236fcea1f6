"""The paired permutation test: if two runs are alike, the order of each unit's pair is arbitrary.

Units are samples, or the clusters of samples that share a passage. Units that would change the sums alike are
taken together: how many of k like units are swapped is a binomial draw, so the draws are exact however many
units there are, and cheap where there are few patterns.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.intervals import SEED

# 16,384 swaps, all of which are tried: the p-value is exact.
MAX_ENUMERATED_UNITS = 14
# The p-value is then within some 4 % (1 / √500), far from any decision at 5 %.
EXCEEDANCES_ENOUGH = 500
# p-values down to 0.000005, which stay below 0.05 over thousands of tests.
MAX_RESAMPLES = 200_000
# Resamples × coins: what bounds the time of one test (about a second).
MAX_COINS = 200_000_000
# Cost of one draw of the number of swapped units among several like ones.
COINS_PER_BINOMIAL = 60
# Resamples × patterns × features: the same for figures of many labels.
MAX_PRODUCTS = 10_000_000_000
# 16 MB of swaps at a time.
CELLS_AT_A_TIME = 2_000_000
# Fewer make the loop in Python the cost.
MIN_AT_A_TIME = 8
# Equal sums in another order differ by rounding, and must count as reached.
TOLERANCE = 1e-9

# From swapped sums (draws, features) to the difference of the two runs in each draw (draws,).
Statistic = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class SwapUnits:
    """Units by pattern. `sizes[p]`: the number of units with pattern p.

    `changes[p]` (patterns, features): a swap of one such unit moves this much from the sums of the first run
    to those of the second.
    """

    changes: Array
    sizes: Numbers

    @property
    def count(self) -> int:
        return int(self.sizes.sum())


def swap_p_value(units: SwapUnits, statistic: Statistic) -> float:
    """Two-sided p-value of the observed difference, in (0, 1]; 1 where no swap changes anything.

    Few units are enumerated. Otherwise swaps are drawn with a fixed seed until the difference was reached
    EXCEEDANCES_ENOUGH times, p = exceedances / draws (Besag & Clifford 1991, "Sequential Monte Carlo
    p-values"), or the draws are used up, p = (exceedances + 1) / (draws + 1), which is never 0 and keeps its
    level (Phipson & Smyth 2010, "Permutation p-values should never be zero").
    """
    units = without_idle(units)
    observed = abs(float(statistic(np.zeros((1, units.changes.shape[1])))[0]))
    threshold = observed - TOLERANCE * max(1.0, observed)
    if units.count <= MAX_ENUMERATED_UNITS:
        return float(np.mean(np.abs(statistic(_every_swap(units))) >= threshold))
    exceedances, draws = 0, 0
    for sums in _drawn_swaps(units):
        reached = np.abs(statistic(sums)) >= threshold
        missing = EXCEEDANCES_ENOUGH - exceedances
        if np.count_nonzero(reached) >= missing:
            last = int(np.flatnonzero(reached)[missing - 1])
            return EXCEEDANCES_ENOUGH / (draws + last + 1)
        exceedances, draws = exceedances + int(np.count_nonzero(reached)), draws + len(sums)
    return (exceedances + 1) / (draws + 1)


def sum_p_value(units: SwapUnits) -> float:
    """The p-value of the sum of one feature: whether the differences favour one run."""
    total = float(units.changes[:, 0] @ units.sizes)
    return swap_p_value(units, lambda swapped: total - 2.0 * swapped[:, 0])


def without_idle(units: SwapUnits) -> SwapUnits:
    """Drops units whose two answers have the same value: swapping them has no effect."""
    is_busy = np.any(units.changes != 0.0, axis=1) & (units.sizes > 0)
    return SwapUnits(units.changes[is_busy], units.sizes[is_busy])


def _every_swap(units: SwapUnits) -> Array:
    """Every way to swap: (2 ^ units, features)."""
    single = np.repeat(units.changes, units.sizes, axis=0)
    choices = np.arange(2 ** len(single))[:, np.newaxis] >> np.arange(len(single)) & 1
    sums: Array = choices.astype(np.float64) @ single
    return sums


def _drawn_swaps(units: SwapUnits) -> Iterator[Array]:
    """Draws (draws, features), a bounded number of them at a time and in all."""
    generator = np.random.default_rng(SEED)
    # A coin for each of a few like units is cheaper than one binomial draw for all of them.
    is_few = units.sizes < COINS_PER_BINOMIAL
    single = np.repeat(units.changes[is_few], units.sizes[is_few], axis=0)
    several, sizes = units.changes[~is_few], units.sizes[~is_few]
    coins = len(single) + COINS_PER_BINOMIAL * len(several)
    most = min(MAX_COINS // coins, MAX_PRODUCTS // (single.size + several.size))
    wanted = max(1_000, min(MAX_RESAMPLES, most))
    at_a_time = max(MIN_AT_A_TIME, min(10_000, CELLS_AT_A_TIME // (len(single) + len(several))))
    for start in range(0, wanted, at_a_time):
        draws = min(at_a_time, wanted - start)
        swapped = generator.binomial(sizes, 0.5, size=(draws, len(sizes))).astype(np.float64)
        yield swapped @ several + _coins(generator, draws, len(single)) @ single


def _coins(generator: np.random.Generator, draws: int, coins: int) -> Array:
    """Fair coins (draws, coins) of 0 and 1, eight to a random byte."""
    random_bytes = generator.integers(0, 256, size=(draws, -(-coins // 8)), dtype=np.uint8)
    return np.unpackbits(random_bytes, axis=1, count=coins).astype(np.float64)
