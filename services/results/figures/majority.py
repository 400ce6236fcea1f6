"""The rollouts of a sample vote: which row of each sample stands for it."""

import numpy as np

from services.results.figures.score_columns import Array, Numbers


def rows_of_majority(samples: Numbers, rollouts: Numbers, votes: Array) -> Numbers:
    """A row of each sample whose vote most of its rollouts gave; of equals, the vote that was given first.

    NaN is no vote: it stands for a sample only where none of its rollouts gave one.
    """
    rows = np.lexsort((rollouts, samples))
    ballots = np.stack([samples[rows], np.nan_to_num(votes[rows], nan=np.inf)], axis=1)
    distinct, first, times = np.unique(ballots, axis=0, return_index=True, return_counts=True)
    times = np.where(np.isinf(distinct[:, 1]), 0, times)
    best_first = np.lexsort((first, -times, distinct[:, 0]))
    _, winners = np.unique(distinct[best_first, 0], return_index=True)
    chosen: Numbers = rows[first[best_first[winners]]]
    return chosen
