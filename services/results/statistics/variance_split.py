"""What a figure of one run scatters by: rows, rollouts and runs, from repetitions of the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.paired.difference_estimate import t_quantile


@dataclass(frozen=True, slots=True)
class RepeatedTask:
    """Scores of a task in runs that repeat each other, as arrays (runs, rows) over the rows of all runs.

    `means` over the rollouts of a row, `counts` of these, and `squares`: their summed squared deviations from
    the mean. `weight`: of the task's mean in the figure.
    """

    means: Array
    counts: Numbers
    squares: Array
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """The standard error of the figure of a run with one rollout, in three parts whose squares add up.

    `sample`: other rows of the same kind. `rollout`: other answers to these rows. `run`: what moves all rows
    of a run together, None with one run; `run_p_value`: of the test that it is 0, None where it has none.
    `degrees_of_freedom`: of rollout and run together.
    """

    sample: float
    rollout: float
    run: float | None
    run_p_value: float | None
    degrees_of_freedom: float

    @property
    def noise_floor(self) -> float:
        """Two such runs of one model differ by less in 95 % of repetitions on these rows."""
        variance = self.rollout**2 + (self.run or 0.0) ** 2
        return t_quantile(self.degrees_of_freedom, 0.975) * math.sqrt(2 * variance)


@dataclass(frozen=True, slots=True)
class _TaskVariances:
    """Parts of the variance of a run's figure with one rollout; `degrees` of freedom of `rollout`.

    `rollouts`: the harmonic mean of those of a row.
    """

    sample: float
    rollout: float
    degrees: int
    rollouts: float


def split_variance(tasks: Sequence[RepeatedTask]) -> VarianceSplit | None:
    """A random-effects analysis of variance of rows × runs with rollouts in the cells (Searle, Casella &
    McCulloch 1992); σ² of rollouts is that of Miller 2024 ("Adding error bars to evals", 3.2).

    None where nothing was asked twice, or a task has fewer than two rows.
    """
    known = [_of_task(task) for task in tasks]
    parts = [one for one in known if one is not None]
    if not tasks or len(parts) < len(tasks):
        return None
    sample, rollout = sum(one.sample for one in parts), sum(one.rollout for one in parts)
    degrees = _degrees([(one.rollout, one.degrees) for one in parts])
    # That of the figure of a run with all of its rollouts.
    expected = sum(one.rollout / one.rollouts for one in parts)
    runs = len(tasks[0].means)
    if runs < 2:
        return VarianceSplit(math.sqrt(sample), math.sqrt(rollout), None, None, degrees)
    figures = sum(task.weight * task.means.mean(axis=1) for task in tasks)
    spread = float(np.var(figures, ddof=1))
    is_more = spread > expected
    seen = (spread, runs - 1) if is_more else (expected, degrees)
    return VarianceSplit(
        math.sqrt(sample),
        math.sqrt(rollout),
        math.sqrt(spread - expected) if is_more else 0.0,
        float(fdtrc(runs - 1, degrees, spread / expected)) if expected else None,
        _degrees([seen, (rollout - expected, degrees)]),
    )


def _of_task(task: RepeatedTask) -> _TaskVariances | None:
    """The interaction of rows and runs counts as rollouts: both are other answers to the same row."""
    runs, rows = task.means.shape
    degrees = int((task.counts - 1).sum()) + (runs - 1) * (rows - 1)
    if rows < 2 or not degrees:
        return None
    rollouts = 1 / float((1 / task.counts).mean())
    of_rows = task.means.mean(axis=0)
    residuals = task.means - of_rows - task.means.mean(axis=1, keepdims=True) + task.means.mean()
    rollout = (float(task.squares.sum()) + rollouts * float(np.square(residuals).sum())) / degrees
    sample = max(0.0, float(of_rows.var(ddof=1)) - rollout / (runs * rollouts))
    share = task.weight**2 / rows
    return _TaskVariances(share * sample, share * rollout, degrees, rollouts)


def _degrees(parts: Sequence[tuple[float, float]]) -> float:
    """Satterthwaite's degrees of freedom of a sum of variances, each with its own."""
    uncertain = sum(variance**2 / degrees for variance, degrees in parts)
    return sum(variance for variance, _ in parts) ** 2 / uncertain if uncertain else math.inf


@dataclass(frozen=True, slots=True)
class RepetitionSpread:
    """How figures of single runs scatter: `variance` of a run of a model, pooled over models.

    `runs` of `models` that were run several times under the same conditions.
    """

    runs: int
    models: int
    variance: float

    @property
    def noise_floor(self) -> float:
        """Two runs of one model differ by less in 95 % of repetitions: Student's t, runs - models degrees."""
        return t_quantile(self.runs - self.models, 0.975) * math.sqrt(2 * self.variance)
