"""The 95 % interval of a figure from its bootstrap samples."""

import numpy as np
from scipy.special import ndtr, ndtri

from services.results.figures.score_columns import Array, Numbers

_ENDS = np.array([0.025, 0.975])


def percentile_interval(draws: Array) -> tuple[float, float]:
    low, high = np.quantile(draws, _ENDS)
    return float(low), float(high)


def corrected_interval(draws: Array, figure: float, left_out: Array, sizes: Numbers) -> tuple[float, float]:
    """Corrected for bias and for a spread that changes with the figure (BCa; Efron 1987).

    `left_out[p]` is the figure without one of the `sizes[p]` units of pattern p.
    """
    below = (np.sum(draws < figure) + np.sum(draws == figure) / 2) / len(draws)
    bias = ndtri(np.clip(below, 1 / len(draws), 1 - 1 / len(draws)))
    shifts = np.average(left_out, weights=sizes) - left_out
    spread = 6 * float(sizes @ shifts**2) ** 1.5
    acceleration = float(sizes @ shifts**3) / spread if spread > 0 else 0.0
    shifted = bias + ndtri(_ENDS)
    low, high = np.quantile(draws, ndtr(bias + shifted / (1 - acceleration * shifted)))
    return float(low), float(high)
