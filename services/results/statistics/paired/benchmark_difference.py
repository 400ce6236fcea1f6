"""The difference of two runs over the tasks of a benchmark, from the differences of the tasks."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import stdtr

from services.results.statistics.columns import Array
from services.results.statistics.paired.difference_estimate import (
    STRATIFIED_PERMUTATION,
    STRATIFIED_T,
    DifferenceEstimate,
    undefined,
    with_interval,
)
from services.results.statistics.paired.mean_difference import NO_SPREAD
from services.results.statistics.paired.permutation_test import SwapUnits, sum_p_value, without_idle
from services.results.statistics.paired.rollout_noise import weighted_noise

# Student's t holds its level with at least so many differing samples (or passages) and degrees of freedom.
ENOUGH_FOR_T = 100

NO_FIGURE = "a task has no figure for both runs"
NO_ERROR = "a task has too few samples for a test"


def benchmark_difference(
    tasks: Sequence[DifferenceEstimate], *, is_weighted_by_size: bool
) -> DifferenceEstimate:
    """Weighted mean of the tasks' differences: each pair counts the same, or each task.

    Tasks are strata: their samples are drawn apart, so variances add up with the squares of the weights
    (Cochran 1977, "Sampling techniques", 5.3), and the interval is Student's. A small benchmark of means
    is tested by a permutation within each task, any other by t. Without the figure of one task the benchmark
    has none either, as in a summary: a mean over the others would be that of another benchmark. One task
    alone is the benchmark.
    """
    # With its own test: the formulas below would give another p-value for the same figure.
    if len(tasks) == 1:
        return tasks[0]
    pairs = sum(task.pairs for task in tasks)
    if not tasks or any(task.difference is None for task in tasks):
        return undefined(pairs, NO_FIGURE)
    sizes = np.array([task.pairs if is_weighted_by_size else 1 for task in tasks], dtype=np.float64)
    weights = sizes / sizes.sum()
    estimate = DifferenceEstimate(
        pairs=pairs,
        first_mean=float(weights @ [_known(task.first_mean) for task in tasks]),
        second_mean=float(weights @ [_known(task.second_mean) for task in tasks]),
        difference=float(weights @ [_known(task.difference) for task in tasks]),
        clusters=sum(task.clusters for task in tasks),
        only_first_right=sum(task.only_first_right for task in tasks),
        only_second_right=sum(task.only_second_right for task in tasks),
        noise=weighted_noise([task.noise for task in tasks], weights),
    )
    return _tested(estimate, tasks, weights)


def _tested(
    estimate: DifferenceEstimate, tasks: Sequence[DifferenceEstimate], weights: Array
) -> DifferenceEstimate:
    if any(_has_no_error(task) for task in tasks):
        return replace(estimate, remark=NO_ERROR)
    variances = np.square(weights * [task.stderr or 0.0 for task in tasks])
    stderr = math.sqrt(float(variances.sum()))
    if not stderr:
        return replace(estimate, p_value=1.0, test=STRATIFIED_PERMUTATION, remark=NO_SPREAD)
    freedom = _degrees_of_freedom(variances, tasks)
    estimate = with_interval(estimate, stderr, freedom)
    units = _swap_units(tasks, weights)
    if units is not None and min(freedom, units.count) <= ENOUGH_FOR_T:
        return replace(estimate, p_value=sum_p_value(units), test=STRATIFIED_PERMUTATION)
    p_value = float(2 * stdtr(freedom, -abs(_known(estimate.difference)) / stderr))
    return replace(estimate, p_value=p_value, test=STRATIFIED_T)


def _degrees_of_freedom(variances: Array, tasks: Sequence[DifferenceEstimate]) -> float:
    """Welch and Satterthwaite's (Welch 1947): near those of a task that brings most of the variance."""
    of_task = np.array([max(1, (task.clusters or task.pairs) - 1) for task in tasks])
    return float(variances.sum() ** 2 / (np.square(variances) / of_task).sum())


def _swap_units(tasks: Sequence[DifferenceEstimate], weights: Array) -> SwapUnits | None:
    """Share of each sample or passage in the difference; None where a task's figure is not a mean."""
    found = [task.units for task in tasks if task.units is not None]
    if len(found) < len(tasks):
        return None
    changes = [units.sums * weight / units.sample_count for units, weight in zip(found, weights, strict=True)]
    together = np.concatenate(changes)[:, np.newaxis], np.concatenate([units.sizes for units in found])
    return without_idle(SwapUnits(*together))


def _has_no_error(task: DifferenceEstimate) -> bool:
    """No difference in several pairs is an error of zero; the error of a single pair is unknown."""
    return task.stderr is None and not (task.difference == 0.0 and task.pairs > 1)


def _known(number: float | None) -> float:
    assert number is not None
    return number
