"""How many rows and rollouts show a difference, from the spread of a stored comparison (Miller 2024)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from services.results.statistics.paired.difference_estimate import (
    LEVEL,
    POWER,
    DifferenceEstimate,
    t_quantile,
)


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

    Where a stored run has one rollout its share of the spread is unknown: one size, for as many as there are.

    The variance of the mean difference of n rows is (ω² + σ² / K) / n: ω² between samples, σ² within a
    sample of both models together, K rollouts (Miller 2024, "Adding error bars to evals", 5). Rows beyond
    those of the benchmark are more of the same kind.
    """
    if not estimate.stderr or not estimate.pairs:
        return
    if estimate.noise is None:
        yield PlannedSize(None, _rows(estimate.stderr**2 * estimate.pairs, goal))
        return
    between = max(0.0, estimate.stderr**2 - estimate.noise.stderr**2)
    for power in range(max_rollouts.bit_length()):
        variance = between + estimate.noise.of_single**2 / 2**power
        yield PlannedSize(2**power, _rows(variance * estimate.pairs, goal))


def _rows(variance_of_row: float, goal: SizeGoal) -> int:
    """n = (t(1 - α / 2) + t(power))² variance / difference², with n - 1 degrees of freedom."""

    def needed(degrees: float) -> float:
        quantiles = t_quantile(degrees, 1 - goal.alpha / 2) + t_quantile(degrees, goal.power)
        return quantiles**2 * variance_of_row / goal.difference**2

    rows = max(2, math.ceil(needed(math.inf)))
    # Two or three more, and some dozens at sizes of a few rows.
    while needed(rows - 1) > rows:
        rows += 1
    return rows
