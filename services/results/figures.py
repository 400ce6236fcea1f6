"""From the scores of a task to its figures: mean, spread, standard error, 95 % interval; None, never NaN."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from services.results.label_figures import LABEL_FIGURES, Measure, measured, resampled
from services.results.score_columns import Array, LabelColumns, ScoreColumns

NORMAL_975 = 1.959963984540054

STUDENT_T = "student-t"
WILSON = "wilson"
BOOTSTRAP = "bootstrap"


@dataclass(frozen=True, slots=True)
class Figure:
    """`mean` is the figure itself, also for f1 and mcc. `n` counts samples, not rollouts.

    `std` is the spread of the figure over rollouts where there are several, else its standard error.
    """

    mean: float | None = None
    std: float | None = None
    stderr: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 0
    interval_method: str = ""


def figure_of(metric: str, columns: ScoreColumns | LabelColumns) -> Figure:
    """`metric` as in the keys of a score; those that need labels (f1, mcc) take `LabelColumns`."""
    if columns.count == 0:
        return Figure()
    if isinstance(columns, LabelColumns):
        return _label_figure(metric.partition(",")[0], columns)
    return _mean_figure(columns)


def is_label_metric(metric: str) -> bool:
    return metric.partition(",")[0] in LABEL_FIGURES


def _mean_figure(columns: ScoreColumns) -> Figure:
    """Rollouts are averaged per sample first; samples of a cluster are not taken for independent."""
    samples = columns.sample_means()
    mean = float(samples.values.mean())
    spread = _spread(columns.rollout_means()) if columns.has_rollouts else None
    figure = Figure(mean=mean, std=spread, n=len(samples.values))
    groups = samples.cluster_sums_around(mean)
    if len(groups) < 2:
        return figure
    stderr = math.sqrt(len(groups) / (len(groups) - 1) * float(np.square(groups).sum())) / figure.n
    figure = replace(figure, stderr=stderr, std=stderr if spread is None else spread)
    is_proportion = not samples.has_clusters and bool(np.isin(samples.values, (0.0, 1.0)).all())
    return _with_wilson(figure) if is_proportion else _with_student_t(figure, len(groups) - 1)


def _with_student_t(figure: Figure, degrees_of_freedom: int) -> Figure:
    assert figure.mean is not None
    assert figure.stderr is not None
    half = float(stdtrit(degrees_of_freedom, 0.975)) * figure.stderr
    return replace(figure, ci_low=figure.mean - half, ci_high=figure.mean + half, interval_method=STUDENT_T)


def _with_wilson(figure: Figure) -> Figure:
    """Right at small n too, and not empty where all are right or all wrong."""
    assert figure.mean is not None
    share, n, z2 = figure.mean, figure.n, NORMAL_975**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_975 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low, high = min(share, centre - half), max(share, centre + half)
    return replace(figure, ci_low=max(0.0, low), ci_high=min(1.0, high), interval_method=WILSON)


def _label_figure(metric: str, columns: LabelColumns) -> Figure:
    measure = LABEL_FIGURES[metric]
    units = columns.resampling_units()
    spread = _rollout_spread(measure, columns) if columns.has_rollouts else None
    figure = Figure(mean=measured(measure, units), std=spread, n=columns.sample_count)
    if units.count < 2:
        return figure
    draws = resampled(measure, units)
    low, high = (float(value) for value in np.percentile(draws, (2.5, 97.5)))
    stderr = float(draws.std(ddof=1))
    return replace(
        figure,
        std=stderr if spread is None else spread,
        stderr=stderr,
        ci_low=low,
        ci_high=high,
        interval_method=BOOTSTRAP,
    )


def _rollout_spread(measure: Measure, columns: LabelColumns) -> float:
    return _spread([measured(measure, rollout.resampling_units()) for rollout in columns.by_rollout()])


def _spread(values: Sequence[float] | Array) -> float:
    return float(np.std(values, ddof=1))
