"""The way from the scores of a task to its figures: mean, spread, standard error, 95 % interval.

None, never NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from proctor.values.metrics.metric import Unit
from proctor.values.metrics.names import is_right_or_wrong, unit_of
from services.results.statistics.columns import Array, PairColumns
from services.results.statistics.correlations import (
    NUMBER_FIGURES,
    Correlation,
    correlated,
    resampled_correlations,
)
from services.results.statistics.intervals import (
    ROUNDING,
    SEED,
    Interval,
    corrected_interval,
    degrees_of_freedom,
    effective_wilson_interval,
    percentile_interval,
    student_t_interval,
    wilson_interval,
)
from services.results.statistics.label_figures import (
    Measure,
    label_measure,
    left_out,
    measured,
    resampled,
    resampling_units,
)
from services.results.statistics.sample_scores import SampleScores, ScoreColumns

BOOTSTRAP = "bootstrap"

# Bounds the work of a bootstrap: of more samples or clusters it draws from a random part.
MAX_UNITS = 20_000

Columns = SampleScores | ScoreColumns | PairColumns


@dataclass(frozen=True, slots=True)
class Figure:
    """`mean` is the figure itself, also for f1 and mcc. `n` counts samples, not rollouts.

    `std` is the spread of the figure over rollouts where there are several, else its standard error;
    `within_std` is the standard deviation over the rollouts of one sample, averaged over samples.

    The last two are for the groups of its summary and are not stored: the ends of Student's interval may be
    cut at 0 and 1, and a group needs them whole. `is_fraction`: it cannot be below 0 or above 1.
    """

    mean: float | None = None
    std: float | None = None
    stderr: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 0
    interval_method: str = ""
    within_std: float | None = None
    degrees_of_freedom: float | None = field(default=None, compare=False)
    is_fraction: bool = field(default=False, compare=False)


def figure_of(metric: str, columns: Columns, average: str = "binary", label_count: int = 0) -> Figure:
    """`metric` as in the keys of a score: f1, mcc, pearson and spearman take PairColumns.

    `average` is for f1 over several labels, of which the task has `label_count` (0: as many as were seen).
    """
    if isinstance(columns, ScoreColumns):
        columns = columns.by_sample()
    if columns.count == 0:
        return Figure()
    # Squares of very large values overflow; such figures are undefined.
    with np.errstate(all="ignore"):
        return only_finite(_figure(metric.partition(",")[0], columns, average, label_count))


def _figure(name: str, columns: SampleScores | PairColumns, average: str, label_count: int) -> Figure:
    if isinstance(columns, PairColumns) and name in NUMBER_FIGURES:
        return _number_figure(NUMBER_FIGURES[name], columns.only_read())
    if isinstance(columns, PairColumns):
        figure = _label_figure(label_measure(name, average, label_count), columns)
    else:
        # pass@k is a metric of right and wrong whose estimates may lie between.
        figure = _mean_figure(columns, is_share=is_right_or_wrong(name) and columns.is_whole)
    # A log may have percents where ours is a share.
    is_fraction = unit_of(name) is Unit.SHARE and 0 <= (figure.mean or 0.0) <= 1
    return within_bounds(replace(figure, is_fraction=is_fraction))


def only_finite(figure: Figure) -> Figure:
    """Values that are not finite are undefined.

    Without a mean the whole figure is; without an end only the interval is.
    """

    def defined(number: float | None) -> float | None:
        return number if number is not None and math.isfinite(number) else None

    if defined(figure.mean) is None:
        return Figure(n=figure.n)
    ends = defined(figure.ci_low), defined(figure.ci_high)
    low, high = ends if None not in ends else (None, None)
    return replace(
        figure,
        std=defined(figure.std),
        stderr=defined(figure.stderr),
        within_std=defined(figure.within_std),
        ci_low=low,
        ci_high=high,
        interval_method="" if low is None else figure.interval_method,
    )


def _mean_figure(scores: SampleScores, *, is_share: bool) -> Figure:
    """Rollouts are averaged per sample first; samples of a cluster are not taken for independent.

    `is_share`: every score is right or wrong.
    """
    samples = scores.samples
    mean = samples.mean()
    figure = Figure(mean=mean, n=len(samples.values))
    rounding = ROUNDING * float(np.abs(samples.values).max())
    if scores.has_rollouts:
        within_std = None if scores.within_std is None else _rounded(scores.within_std, rounding)
        std = _rounded(_spread(scores.rollout_means), rounding)
        figure = replace(figure, std=std, within_std=within_std)
    # One sum for each sample where there are no clusters.
    groups = samples.cluster_sums_around(mean)
    # One cluster has no spread to judge the mean by.
    if len(groups) < 2:
        return figure
    error = math.sqrt(len(groups) / (len(groups) - 1) * float(np.square(groups).sum())) / figure.n
    stderr = _rounded(error, rounding)
    figure = replace(figure, stderr=stderr, std=stderr if figure.std is None else figure.std)
    interval = _interval_of_mean(scores, mean, stderr, is_share=is_share)
    if interval is None:
        return figure
    return with_interval(figure, interval)


def with_interval(figure: Figure, interval: Interval) -> Figure:
    return replace(
        figure,
        ci_low=interval.low,
        ci_high=interval.high,
        interval_method=interval.method,
        degrees_of_freedom=interval.degrees_of_freedom,
    )


def _interval_of_mean(scores: SampleScores, mean: float, stderr: float, *, is_share: bool) -> Interval | None:
    samples = scores.samples
    if not is_share:
        return student_t_interval(mean, stderr, degrees_of_freedom(samples))
    if scores.has_rollouts or samples.has_clusters:
        return effective_wilson_interval(mean, stderr, samples, scores.count)
    return wilson_interval(mean, scores.count)


def within_bounds(figure: Figure) -> Figure:
    """Student's t of few samples has ends beyond 0 and 1, where no fraction can be."""
    if not figure.is_fraction or figure.ci_low is None or figure.ci_high is None:
        return figure
    return replace(figure, ci_low=max(0.0, figure.ci_low), ci_high=min(1.0, figure.ci_high))


def _label_figure(measure: Measure, columns: PairColumns) -> Figure:
    mean = measured(measure, columns)
    figure = Figure(mean=mean, n=columns.sample_count)
    if columns.has_rollouts:
        rollouts = [measured(measure, rollout) for rollout in columns.by_rollout()]
        figure = replace(figure, std=_spread(rollouts))
    # Rows without keys are few patterns, however many there are.
    part, share = _part_of(columns) if columns.has_units else (columns, 1.0)
    units = resampling_units(part)
    if units.count < 2:
        return figure
    draws = _of_all(resampled(measure, units), measured(measure, part), mean, share)
    figure = _with_stderr(figure, draws)
    if figure.stderr is None:
        return figure
    return _with_ends(figure, *corrected_interval(draws, mean, left_out(measure, units), units.sizes))


def _number_figure(correlation: Correlation, columns: PairColumns) -> Figure:
    """Undefined where one side does not vary: all answers the same, or only one sample."""
    if columns.count == 0:
        return Figure()
    figure = Figure(n=columns.sample_count)
    mean = correlated(correlation, columns)
    if math.isnan(mean):
        return figure
    figure = replace(figure, mean=mean)
    if columns.has_rollouts:
        rollouts = np.array([correlated(correlation, rollout) for rollout in columns.by_rollout()])
        defined = rollouts[~np.isnan(rollouts)]
        figure = replace(figure, std=_spread(defined) if len(defined) > 1 else None)
    part, share = _part_of(columns)
    draws = _of_all(resampled_correlations(correlation, part), correlated(correlation, part), mean, share)
    figure = _with_stderr(figure, draws)
    return _with_ends(figure, *percentile_interval(draws)) if figure.stderr is not None else figure


def _part_of(columns: PairColumns) -> tuple[PairColumns, float]:
    """A random part of the samples or clusters where there are many, and its share of them."""
    units = columns.unit_count
    if units <= MAX_UNITS:
        return columns, 1.0
    # Whole samples or clusters: rows by themselves would break what belongs together.
    chosen = np.random.default_rng(SEED).choice(units, MAX_UNITS, replace=False)
    return columns.of_units(chosen), MAX_UNITS / units


def _of_all(draws: Array, figure_of_part: float, figure: float, share: float) -> Array:
    """Draws of a part of the units as draws of all: errors shrink with the root of their number."""
    return draws if share == 1 else figure + (draws - figure_of_part) * math.sqrt(share)


def _with_stderr(figure: Figure, draws: Array) -> Figure:
    """Undefined where all draws are the same: they contain no information about the error."""
    spread = _spread(draws) if len(draws) > 1 else 0.0
    stderr = spread if spread > ROUNDING else None
    return replace(figure, stderr=stderr, std=stderr if figure.std is None else figure.std)


def _with_ends(figure: Figure, low: float, high: float) -> Figure:
    return replace(figure, ci_low=low, ci_high=high, interval_method=BOOTSTRAP)


def _rounded(error: float, rounding: float) -> float:
    """0 where the error is no larger than that of computing: an interval would be made of rounding errors."""
    return 0.0 if error <= rounding else error


def _spread(values: Sequence[float] | Array) -> float:
    return float(np.std(values, ddof=1))
