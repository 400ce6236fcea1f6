"""Whether a judge of pairs favours a place: pairs that were asked in both orders."""

import numpy as np

from services.results.statistics.columns import Array, Numbers
from services.results.statistics.paired.difference_estimate import DifferenceEstimate
from services.results.statistics.paired.mean_difference import difference_of_means
from services.results.statistics.paired.pairs import ScorePairs


def position_bias(
    shown_first: Array, shown_second: Array, clusters: Numbers | None = None
) -> DifferenceEstimate:
    """How much more of its pairs an answer wins where it is shown first than where it is shown second.

    Verdicts for the same answer of each pair, 1 (it wins) to 0, a half for a tie: `shown_first[i]` where it
    stands first, `shown_second[i]` where it stands second. The test is that of any paired comparison: exact
    McNemar where every verdict is 0 or 1, else a permutation.
    """
    counts = np.ones(len(shown_first), dtype=np.int64)
    return difference_of_means(ScorePairs(shown_first, shown_second, counts, clusters, is_judged=True))


def verdict_of_both_orders(shown_first: Array, shown_second: Array) -> Array:
    """1, 0, or a half where the orders disagree: a verdict that depends on the place says nothing."""
    same = shown_first == shown_second
    verdicts: Array = np.where(same, shown_first, 0.5)
    return verdicts
