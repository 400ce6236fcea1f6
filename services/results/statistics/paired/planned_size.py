"""How many rows and rollouts show a difference, from the spread of a stored comparison (Miller 2024)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.results.statistics.paired.difference_estimate import (
    EXACT_MCNEMAR,
    LEVEL,
    POWER,
    DifferenceEstimate,
    t_quantile,
)

# More rows than any benchmark has: beyond, a size is no plan.
MAX_ROWS = 10**12


@dataclass(frozen=True, slots=True)
class SizeGoal:
    """A true `difference` in the unit of the metric is shown at the two-sided level `alpha` with `power`."""

    difference: float
    alpha: float = LEVEL
    power: float = POWER


@dataclass(frozen=True, slots=True)
class PlannedSize:
    """`rows` with `rollouts` each, in both runs; `rollouts` None: as many as the stored runs have."""

    rollouts: int | None
    rows: int


def planned_sizes(estimate: DifferenceEstimate, goal: SizeGoal, max_rollouts: int) -> Iterator[PlannedSize]:
    """By rollouts: 1 and the powers of two up to `max_rollouts`.

    Sizes of more than `MAX_ROWS` are left out.

    Where a stored run has one rollout its share of the spread is unknown: one size, for as many as there are.
    Of right and wrong answers it is that of the exact McNemar test.

    The variance of the mean difference of n rows is (ω² + σ² / K) / n: ω² between samples, σ² within a
    sample of both models together, K rollouts (Miller 2024, "Adding error bars to evals", 5). Rows beyond
    those of the benchmark are more of the same kind.
    """
    if estimate.noise is None and estimate.test == EXACT_MCNEMAR:
        rows = _rows_for_mcnemar(
            (estimate.only_first_right + estimate.only_second_right) / estimate.pairs, goal
        )
        if rows is not None:
            yield PlannedSize(None, rows)
        return
    for rollouts, variance in _variances(estimate, max_rollouts):
        rows = _rows(variance * estimate.pairs, goal)
        if rows is not None:
            yield PlannedSize(rollouts, rows)


def _variances(estimate: DifferenceEstimate, max_rollouts: int) -> Sequence[tuple[int | None, float]]:
    """Of the mean difference, with its rollouts."""
    if not estimate.stderr or not estimate.pairs:
        return []
    if estimate.noise is None:
        return [(None, estimate.stderr**2)]
    between, within = estimate.stderr**2 - estimate.noise.stderr**2, estimate.noise.of_single**2
    counts = [2**power for power in range(max_rollouts.bit_length())]
    return [(rollouts, max(0.0, between) + within / rollouts) for rollouts in counts]


def _rows(variance_of_row: float, goal: SizeGoal) -> int | None:
    """n = (t(1 - α / 2) + t(power))² variance / difference², with n - 1 degrees of freedom.

    None for more than `MAX_ROWS`.
    """

    def needed(degrees: float) -> float:
        quantiles = t_quantile(degrees, 1 - goal.alpha / 2) + t_quantile(degrees, goal.power)
        return quantiles**2 * variance_of_row / goal.difference**2

    # The square of a tiny difference is 0.
    if goal.difference**2 * MAX_ROWS <= variance_of_row:
        return None
    rows = max(2, math.ceil(needed(math.inf)))
    # Two or three more, and some dozens at sizes of a few rows.
    while needed(rows - 1) > rows:
        rows += 1
    return rows


def _rows_for_mcnemar(differing: float, goal: SizeGoal) -> int | None:
    """As for Student's test, with the variance ψ - d² of a true difference d where a share ψ of rows differs.

    n / 4 (1 + √(1 + 4 / (n d)))² corrects these n rows for an exact test (Casagrande, Pike & Smith 1978, "An
    improved approximate formula for calculating sample sizes for comparing two binomial distributions").
    None for more than `MAX_ROWS`.
    """
    difference = goal.difference
    # So many rows differ at least.
    differing = max(differing, difference)
    variance = differing - difference**2
    # The square of a tiny difference is 0.
    if difference**2 * MAX_ROWS <= variance:
        return None
    quantiles = t_quantile(math.inf, 1 - goal.alpha / 2) + t_quantile(math.inf, goal.power)
    rows = quantiles**2 * variance / difference**2
    corrected = (math.sqrt(rows) + math.sqrt(rows + 4 / difference)) ** 2 / 4
    # Fewer show nothing if all that differ are won.
    fewest = math.log2(2 / goal.alpha) / differing
    return math.ceil(max(corrected, fewest))
