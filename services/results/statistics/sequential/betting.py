"""Tests of a mean difference that may be looked at after every shard: bets against a mean, and what they win.

Waudby-Smith & Ramdas 2023, "Estimating means of bounded random variables by betting": who bets a share of a
capital of 1 on each difference, at odds that are fair if the mean is m, has an expected capital of 1 at any
time, whenever one stops. A capital of 2 / α is reached with a chance of α / 2 at most (Ville 1939): then m is
refuted. Bets are hedged over both sides, and mixed over sizes of bets as in their grid Kelly. Of right and
wrong answers at m = 0 that is a mixture test martingale on the discordant pairs: with a Beta prior over the
chance that a discordant pair is won (Robbins 1970).

Differences are of independent samples, in random order; those of clusters are not.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import logsumexp, roots_jacobi

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.paired.difference_estimate import LEVEL

# The prior of bets is Beta(10, 10): most stake below a fifth, as models of one kind differ by little.
PRIOR = 10.0
# Sizes of bets on each side. Any mixture keeps the level; more of them win no more.
_BETS = 32
_nodes, _weights = roots_jacobi(2 * _BETS, PRIOR - 1, PRIOR - 1)
_SIZES, _LOG_SHARES = _nodes[_nodes > 0], np.log(_weights[_nodes > 0] / _weights[_nodes > 0].sum())
_NEAR_END = 1 - 1e-9
_PRECISION = 1e-9


class SequentialVerdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """Covers the true mean difference at all looks together with a probability of 1 - α."""

    low: float
    high: float

    def verdict(self, margin: float | None = None) -> SequentialVerdict:
        """`margin`: differences within it, either way, are as good as none; None: never equivalent."""
        if self.low > 0:
            return SequentialVerdict.BETTER
        if self.high < 0:
            return SequentialVerdict.WORSE
        if margin is not None and -margin < self.low and self.high < margin:
            return SequentialVerdict.EQUIVALENT
        return SequentialVerdict.UNDECIDED


def confidence_sequence(
    differences: Array, counts: Numbers, width: float = 1.0, alpha: float = LEVEL
) -> ConfidenceSequence:
    """`counts[i]` samples differ by `differences[i]`, first minus second, none beyond ± `width`."""
    scaled, needed = differences / width, math.log(2 / alpha)
    low = _last_refuted(scaled, counts, needed)
    high = -_last_refuted(-scaled, counts, needed)
    return ConfidenceSequence(low * width, high * width)


def log_capital(differences: Array, counts: Numbers, mean: float) -> Array:
    """Logarithm of what bets win that the differences lie above `mean` in the mean: of each row of counts.

    Differences (kinds,) are from -1 to 1, and so is the mean. `counts` is (..., kinds). A bet of size u
    stakes u / (1 + mean): the lowest difference loses a share of u of the capital.
    """
    of_kind = np.log1p(_SIZES[:, np.newaxis] * ((differences - mean) / (1 + mean)))
    capital: Array = logsumexp(counts @ of_kind.T + _LOG_SHARES, axis=-1)
    return capital


def _last_refuted(differences: Array, counts: Numbers, needed: float) -> float:
    """The largest mean that bets on more refute: their capital falls as the mean rises."""
    below, above = -_NEAR_END, _NEAR_END
    if log_capital(differences, counts, below) < needed:
        return -1.0
    while above - below > _PRECISION:
        middle = (below + above) / 2
        is_refuted = log_capital(differences, counts, middle) >= needed
        below, above = (middle, above) if is_refuted else (below, middle)
    return below


def sequence_with_failures(
    differences: Array, counts: Numbers, failed: int, alpha: float = LEVEL
) -> ConfidenceSequence:
    """Of differences from -1 to 1 and `failed` samples whose difference is not known.

    Each of these may have been any: the lower end takes it for -1, the upper one for 1. What is bet against
    either end wins no more than it would with the true differences, so both keep their level.
    """
    if not failed:
        return confidence_sequence(differences, counts, alpha=alpha)
    with_failed = np.append(counts, failed)
    low = confidence_sequence(np.append(differences, -1.0), with_failed, alpha=alpha).low
    return ConfidenceSequence(
        low, confidence_sequence(np.append(differences, 1.0), with_failed, alpha=alpha).high
    )
