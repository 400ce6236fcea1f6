"""pass@k: how likely at least one of k answers to a sample is right."""

import math

import numpy as np

from services.results.figures.score_columns import Array, Numbers, ScoreColumns


def pass_sizes(rollouts: int) -> list[int]:
    """1, the powers of two up to the rollouts, and the rollouts."""
    powers = [2**power for power in range(rollouts.bit_length())]
    return sorted({*powers, rollouts})


def pass_at(k: int, columns: ScoreColumns) -> ScoreColumns:
    """Each sample's unbiased estimate: 1 − C(n−c, k) / C(n, k) with c right answers of n (Chen et al. 2021).

    Scores are 0 or 1. Samples with fewer than k answers allow no estimate and are left out.
    """
    if k == 1:
        return columns
    assert columns.samples is not None
    _, first, numbers, answers = np.unique(
        columns.samples, return_index=True, return_inverse=True, return_counts=True
    )
    right = np.bincount(numbers, weights=columns.scores).astype(np.int64)
    is_enough = answers >= k
    estimates = _estimates(answers[is_enough].astype(np.int64), right[is_enough], k)
    clusters = None if columns.clusters is None else columns.clusters[first][is_enough]
    return ScoreColumns(estimates, clusters=clusters)


def _estimates(answers: Numbers, right: Numbers, k: int) -> Array:
    kinds, kind_of = np.unique(np.stack([answers, right], axis=1), axis=0, return_inverse=True)
    by_kind = np.array([1 - math.comb(int(n - c), k) / math.comb(int(n), k) for n, c in kinds])
    return by_kind[kind_of.reshape(-1)] if len(kinds) else np.empty(0)
