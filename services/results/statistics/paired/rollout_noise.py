"""How far the difference of two runs scatters where the same models answer the same samples again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.results.statistics.columns import Array, Numbers


@dataclass(frozen=True, slots=True)
class RolloutNoise:
    """Standard error of a difference that comes from the rollouts alone: the samples stay as they are.

    `stderr`: with as many rollouts as there are; `of_single`: with one rollout in both runs.
    """

    stderr: float
    of_single: float


def rollout_noise(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], counts: Numbers
) -> RolloutNoise | None:
    """`counts[i]` samples have the scores `first[i]` in one run, by rollout, and `second[i]` in the other.

    The variance within samples is that of Miller 2024 ("Adding error bars to evals", 3.2), pooled over the
    samples with several rollouts; None where a run has none of these.
    """
    runs = [_within(scores, counts) for scores in (first, second)]
    variances = [each for each in runs if each is not None]
    if len(variances) < 2:
        return None
    samples = int(counts.sum())
    stderr = math.sqrt(sum(variance * share for variance, share in variances) / samples)
    return RolloutNoise(stderr, math.sqrt(sum(variance for variance, _ in variances) / samples))


def weighted_noise(parts: Sequence[RolloutNoise | None], weights: Array) -> RolloutNoise | None:
    """Of a weighted sum of differences over other samples each; None where one is unknown."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    squares = np.square(weights)
    return RolloutNoise(
        math.sqrt(float(squares @ np.square([part.stderr for part in known]))),
        math.sqrt(float(squares @ np.square([part.of_single for part in known]))),
    )


def _within(scores: Sequence[Sequence[float]], counts: Numbers) -> tuple[float, float] | None:
    """The variance of a score within its sample, and the mean of 1 / rollouts over samples."""
    squares = freedom = inverse = 0.0
    for of_sample, count in zip(scores, counts.tolist(), strict=True):
        inverse += count / len(of_sample)
        freedom += count * (len(of_sample) - 1)
        squares += count * float(np.var(of_sample)) * len(of_sample) if len(of_sample) > 1 else 0.0
    return (squares / freedom, inverse / float(counts.sum())) if freedom else None
