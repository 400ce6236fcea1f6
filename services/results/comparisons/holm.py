"""Holm's correction over everything that a comparison tested."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values in the order given; tests that gave none take no part (Holm 1979, "A simple
    sequentially rejective multiple test procedure").

    They hold whatever the tests have in common (pairs of runs share runs, the suite shares its tasks): the
    chance of any false finding among all of them stays below the level. Equal to statsmodels'
    `multipletests`, which cannot be used here: it collects the garbage of the whole process at each call.
    """
    known = np.array([p_value for p_value in p_values if p_value is not None], dtype=np.float64)
    order = np.argsort(known)
    steps = known[order] * np.arange(len(known), 0, -1)
    adjusted = np.empty_like(known)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    in_turn = iter(adjusted.tolist())
    return [None if p_value is None else next(in_turn) for p_value in p_values]
