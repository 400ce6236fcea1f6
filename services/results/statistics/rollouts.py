"""Several answers per sample: pass@k, and majority votes."""

import math

import numpy as np

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.sample_scores import SampleMeans, SampleScores


def rows_of_majority(samples: Numbers, rollouts: Numbers, votes: Array) -> Numbers:
    """A row of each sample whose vote most of its rollouts gave; of equals, the vote that was given first.

    NaN is no vote: it is chosen only where no rollout of the sample has a vote.
    """
    rows = np.lexsort((rollouts, samples))
    ballots = np.stack([samples[rows], np.nan_to_num(votes[rows], nan=np.inf)], axis=1)
    distinct, first, times = np.unique(ballots, axis=0, return_index=True, return_counts=True)
    times = np.where(np.isinf(distinct[:, 1]), 0, times)
    best_first = np.lexsort((first, -times, distinct[:, 0]))
    _, winners = np.unique(distinct[best_first, 0], return_index=True)
    chosen: Numbers = rows[first[best_first[winners]]]
    return chosen


def pass_sizes(rollouts: int) -> list[int]:
    """1, the powers of two up to the rollouts, and the rollouts."""
    powers = [2**power for power in range(rollouts.bit_length())]
    return sorted({*powers, rollouts})


def pass_at(k: int, scores: SampleScores) -> SampleScores:
    """Each sample's unbiased estimate: 1 − C(n−c, k) / C(n, k) with c right answers of n (Chen et al. 2021).

    Scores are 0 or 1. Samples with fewer than k answers allow no estimate and are left out.
    """
    if k == 1:
        return scores
    is_enough = scores.answers >= k
    answers, samples = scores.answers[is_enough], scores.samples
    right = np.rint(samples.values[is_enough] * answers).astype(np.int64)
    clusters = None if samples.clusters is None else samples.clusters[is_enough]
    estimates = _estimates(answers, right, k)
    is_whole = bool(np.isin(estimates, (0.0, 1.0)).all())
    return SampleScores(SampleMeans(estimates, clusters), np.ones_like(answers), np.zeros(0), None, is_whole)


def _estimates(answers: Numbers, right: Numbers, k: int) -> Array:
    kinds, kind_of = np.unique(np.stack([answers, right], axis=1), axis=0, return_inverse=True)
    by_kind = np.array([1 - math.comb(int(n - c), k) / math.comb(int(n), k) for n, c in kinds])
    return by_kind[kind_of.reshape(-1)] if len(kinds) else np.empty(0)
