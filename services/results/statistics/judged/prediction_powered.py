"""The figure of a judge, corrected by the marks of people: prediction-powered inference.

Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, "Prediction-powered inference"; the weight of the judge
is that of Angelopoulos, Duchi & Zrnic 2023, "PPI++". Marks must be of samples that were drawn at random:
marks of answers that look wrong would correct the wrong way.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.intervals import ROUNDING
from services.results.statistics.judged.judged_scores import JudgedScores
from services.results.statistics.paired.difference_estimate import (
    DifferenceEstimate,
    t_quantile,
    undefined,
    with_interval,
)

# Marked samples, or clusters. With fewer intervals cover too little, and the raw figure stands alone.
MIN_MARKS = 30
PREDICTION_POWERED_T = "prediction-powered t"
# An error of the judge of each kind counts as seen this often: a judge whose marks show no error has one too.
PSEUDO_WEIGHT = 0.5
_PSEUDO_MARKS, _PSEUDO_VERDICTS = np.array([1.0, 0.0]), np.array([0.0, 1.0])


@dataclass(frozen=True, slots=True)
class CalibratedFigure:
    """`raw`: the judge's mean. What follows is None below MIN_MARKS: the figure is uncalibrated.

    `weight`: how much the judge's verdicts count (λ); 0: the figure is that of the marks alone, 1: plain
    prediction-powered. `marks` counts marked samples. `more_marks` halve the interval; None where marks alone
    cannot, because there are too few samples.
    """

    samples: int = 0
    marks: int = 0
    raw: float | None = None
    mean: float | None = None
    stderr: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    weight: float | None = None
    degrees_of_freedom: float | None = None
    more_marks: int | None = None

    @property
    def is_calibrated(self) -> bool:
        return self.mean is not None


@dataclass(frozen=True, slots=True)
class _Influence:
    """What each cluster adds to the figure. Its variance: the squares of `of_clusters`, and `beyond`.

    `centre`: where the interval stands, which pseudo marks move a little from the mean. `beyond`: the part of
    pseudo marks. `of_marks`: the part of the variance that more marks make smaller.
    """

    clusters: Numbers
    of_clusters: Array
    beyond: float
    of_marks: float
    mean: float
    centre: float
    weight: float
    degrees_of_freedom: float

    @property
    def variance(self) -> float:
        return float(np.square(self.of_clusters).sum()) + self.beyond


def calibrated_figure(scores: JudgedScores) -> CalibratedFigure:
    """The mean with Student's interval, cluster-robust. All samples count, and weigh the same."""
    if not len(scores.verdicts):
        return CalibratedFigure()
    raw = CalibratedFigure(len(scores.verdicts), scores.mark_count, float(scores.verdicts.mean()))
    found = _influence(scores)
    if found is None:
        return raw
    half = t_quantile(found.degrees_of_freedom, 0.975) * math.sqrt(found.variance)
    return replace(
        raw,
        mean=min(1.0, max(0.0, found.mean)),
        stderr=math.sqrt(found.variance),
        ci_low=max(0.0, min(found.mean, found.centre - half)),
        ci_high=min(1.0, max(found.mean, found.centre + half)),
        weight=found.weight,
        degrees_of_freedom=found.degrees_of_freedom,
        more_marks=_more_marks(found, raw),
    )


def calibrated_difference(first: JudgedScores, second: JudgedScores) -> DifferenceEstimate:
    """First minus second over the samples with verdicts in both runs, each corrected by its own marks.

    Samples are numbered alike in both. The errors of both runs on a sample, or on a cluster, are taken
    together, as in any paired test. Student's degrees of freedom are Welch's and Satterthwaite's.
    """
    first, second = _shared(first, second)
    pairs = len(first.verdicts)
    found = [each for each in (_influence(first), _influence(second)) if each is not None] if pairs else []
    if len(found) < 2:
        return undefined(pairs, f"fewer than {MIN_MARKS} samples of a run are marked")
    one, other = found
    differences = one.of_clusters - other.of_clusters
    variance = float(np.square(differences).sum()) + one.beyond + other.beyond
    doubt = sum(each.of_marks**2 / each.degrees_of_freedom for each in found)
    degrees = (one.of_marks + other.of_marks) ** 2 / doubt if doubt else math.inf
    estimate = DifferenceEstimate(
        pairs=pairs,
        first_mean=one.mean,
        second_mean=other.mean,
        difference=one.mean - other.mean,
        clusters=0 if first.clusters is None else len(differences),
    )
    stderr = math.sqrt(variance)
    estimate = with_interval(estimate, stderr, degrees)
    if stderr <= ROUNDING:
        return estimate
    return replace(
        estimate, p_value=_two_sided(one.mean - other.mean, stderr, degrees), test=PREDICTION_POWERED_T
    )


def _influence(scores: JudgedScores) -> _Influence | None:
    """None where too few samples or clusters are marked."""
    samples = len(scores.verdicts)
    keys = np.arange(samples) if scores.clusters is None else scores.clusters
    clusters, number = np.unique(keys, return_inverse=True)
    marked = np.flatnonzero(np.isfinite(scores.marks))
    units = len(np.unique(number[marked]))
    if units < MIN_MARKS:
        return None

    def summed(of: Array, rows: Numbers | slice = slice(None)) -> Array:
        return np.bincount(number[rows], of, len(clusters)).astype(np.float64)

    marks, verdicts = (
        np.concatenate([each[marked], pseudo])
        for each, pseudo in (
            (scores.marks, _PSEUDO_MARKS),
            (scores.marked_verdicts, _PSEUDO_VERDICTS),
        )
    )
    counts = np.concatenate([np.ones(len(marked)), np.full(2, PSEUDO_WEIGHT)])
    total = float(counts.sum())
    centre = counts @ marks / total, counts @ verdicts / total
    of_marks, of_verdicts = (marks - centre[0]) / total, (verdicts - centre[1]) / total
    of_all = summed(scores.verdicts - scores.verdicts.mean()) / samples
    # The weight with the least variance: that of a regression of what marks add on what verdicts take off.
    added = np.concatenate([summed(of_marks[:-2], marked), math.sqrt(PSEUDO_WEIGHT) * of_marks[-2:]])
    taken = np.concatenate([summed(of_verdicts[:-2], marked), math.sqrt(PSEUDO_WEIGHT) * of_verdicts[-2:]])
    apart = taken - np.concatenate([of_all, np.zeros(2)])
    squares = float(apart @ apart)
    weight = max(0.0, float(added @ apart) / squares) if squares > ROUNDING**2 else 0.0
    # Two degrees of freedom go to the mean and to the weight; the pseudo marks are one unit together.
    errors = math.sqrt((units + 1) / (units - 1)) * (added - weight * taken)
    spread = math.sqrt(len(clusters) / (len(clusters) - 1)) * weight * of_all
    mean_verdict = float(scores.verdicts.mean())
    return _Influence(
        clusters=clusters,
        of_clusters=errors[:-2] + spread,
        beyond=float(np.square(errors[-2:]).sum()),
        of_marks=float(np.square(errors).sum()),
        mean=float(scores.marks[marked].mean())
        + weight * (mean_verdict - float(scores.marked_verdicts[marked].mean())),
        centre=float(centre[0]) + weight * (mean_verdict - float(centre[1])),
        weight=weight,
        degrees_of_freedom=units - 1,
    )


def _more_marks(found: _Influence, figure: CalibratedFigure) -> int | None:
    """The variance is v + m for n marks, and v + m n / n' for n' of them: that is a quarter of it for
    n' = n m / ((v + m) / 4 - v)."""
    fixed = found.variance - found.of_marks
    wanted = found.variance / 4 - fixed
    if wanted <= 0:
        return None
    needed = math.ceil(figure.marks * found.of_marks / wanted)
    return needed - figure.marks if needed <= figure.samples else None


def _shared(first: JudgedScores, second: JudgedScores) -> tuple[JudgedScores, JudgedScores]:
    _, of_first, of_second = np.intersect1d(
        first.samples, second.samples, assume_unique=True, return_indices=True
    )
    return first.only(of_first), second.only(of_second)


def _two_sided(difference: float, stderr: float, degrees_of_freedom: float) -> float:
    return float(2 * stdtr(degrees_of_freedom, -abs(difference) / stderr))
