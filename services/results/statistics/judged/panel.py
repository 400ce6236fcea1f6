"""Several judges of the same answers as one figure, and where one judge leans."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from services.results.statistics.columns import Array, Numbers, numbered
from services.results.statistics.intervals import ROUNDING, student_t_interval
from services.results.statistics.judged.agreement import Agreement, Scale, krippendorffs_alpha
from services.results.statistics.paired.difference_estimate import t_quantile

# With fewer an interval of a slope says nothing.
_MIN_UNITS = 10


@dataclass(frozen=True, slots=True)
class Lean:
    """How much more a judge gives than a reference, with its 95 % interval; None where undefined."""

    answers: int = 0
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class PanelFigure:
    """`spread`: the mean over answers of the standard deviation between judges. None where undefined."""

    answers: int = 0
    mean: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    spread: float | None = None
    agreement: Agreement = field(default_factory=lambda: Agreement(0))


def panel_figure(verdicts: Array, samples: Numbers, *, is_of_numbers: bool) -> PanelFigure:
    """`verdicts` (judges, answers) from 0 to 1, NaN where a judge said nothing; `samples` of the answers.

    Grades are averaged; of labels the majority counts, and the mean of those that are equally frequent.
    Answers of one sample are averaged; the interval is Student's over samples.
    """
    judged = np.isfinite(verdicts).any(axis=0)
    verdicts, samples = verdicts[:, judged], samples[judged]
    if not verdicts.shape[1]:
        return PanelFigure()
    joint = np.nanmean(verdicts, axis=0) if is_of_numbers else _majorities(verdicts)
    numbers = numbered(samples)
    means = np.bincount(numbers, joint) / np.bincount(numbers)
    several = np.isfinite(verdicts).sum(axis=0) > 1
    spread = float(np.nanstd(verdicts[:, several], axis=0).mean()) if several.any() else None
    agreement = krippendorffs_alpha(verdicts, Scale.INTERVAL if is_of_numbers else Scale.NOMINAL)
    mean = float(means.mean())
    found = None
    if len(means) > 1:
        stderr = float(means.std(ddof=1)) / math.sqrt(len(means))
        found = student_t_interval(mean, stderr, len(means) - 1)
    low, high = (max(0.0, found.low), min(1.0, found.high)) if found else (None, None)
    return PanelFigure(verdicts.shape[1], mean, low, high, spread, agreement)


def _majorities(verdicts: Array) -> Array:
    values = np.unique(verdicts[np.isfinite(verdicts)])
    counts = np.stack([(verdicts == value).sum(axis=0) for value in values])
    is_most = counts == counts.max(axis=0)
    majorities: Array = (is_most * values[:, np.newaxis]).sum(axis=0) / is_most.sum(axis=0)
    return majorities


def others_of(verdicts: Array, judge: int, allowed: Sequence[int] | None = None) -> Array:
    """The mean of the other judges by answer, or of those `allowed`; NaN where none of them said anything."""
    rows = [row for row in range(len(verdicts)) if row != judge and (allowed is None or row in allowed)]
    chosen = verdicts[rows]
    counts = np.isfinite(chosen).sum(axis=0)
    means = np.full(verdicts.shape[1], np.nan)
    np.divide(np.nansum(chosen, axis=0), counts, out=means, where=counts > 0)
    return means


def length_bias(verdicts: Array, references: Array, lengths: Array, samples: Numbers) -> Lean:
    """How much more than the reference a judge gives an answer, for each doubling of its length.

    The slope of least squares of verdict less reference on log2 of the characters; an empty answer has one.
    The reference makes it a bias: longer answers may be better. Its error is cluster-robust over samples
    (Liang & Zeger 1986), times (n - 1) / (n - 2) of n samples, with n - 2 degrees of freedom.
    """
    known = np.isfinite(verdicts) & np.isfinite(references)
    errors, doublings = (verdicts - references)[known], np.log2(np.maximum(lengths[known], 1.0))
    number = numbered(samples[known])
    units = int(number.max(initial=-1)) + 1
    if units < _MIN_UNITS or np.ptp(doublings) < ROUNDING:
        return Lean(len(errors))
    apart = doublings - doublings.mean()
    squares = float(apart @ apart)
    slope = float(apart @ errors) / squares
    residuals = errors - errors.mean() - slope * apart
    sums = np.bincount(number, apart * residuals)
    stderr = math.sqrt((units - 1) / (units - 2) * float(sums @ sums)) / squares
    half = t_quantile(units - 2, 0.975) * stderr
    return Lean(len(errors), slope, slope - half, slope + half)


def mean_lean(verdicts: Array, references: Array, samples: Numbers) -> Lean:
    """How much more than the reference a judge gives, with Student's interval over samples."""
    known = np.isfinite(verdicts) & np.isfinite(references)
    errors, number = (verdicts - references)[known], numbered(samples[known])
    if not len(errors):
        return Lean()
    means = np.bincount(number, errors) / np.bincount(number)
    mean = float(means.mean())
    if len(means) < _MIN_UNITS:
        return Lean(len(errors), mean)
    half = t_quantile(len(means) - 1, 0.975) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Lean(len(errors), mean, mean - half, mean + half)
