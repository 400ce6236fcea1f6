"""How much of a grant each worker gets."""

from collections.abc import Mapping

# What a worker may ask at once that has asked nothing lately, of all that is granted.
_LARGEST_FLOOR = 0.02
_FLOORS_TOGETHER = 0.2


def share_out(demands: Mapping[str, float]) -> Mapping[str, float]:
    """By demand, above a small floor; they sum to 1.

    What waits at a worker weighs beside what it sends, so that one with a small share and a queue comes up to
    the others within a few rounds.
    """
    if not demands:
        return {}
    floor = min(_LARGEST_FLOOR, _FLOORS_TOGETHER / len(demands))
    above = 1 - floor * len(demands)
    total = sum(demands.values())
    if not total:
        return dict.fromkeys(demands, 1 / len(demands))
    return {worker: floor + above * demand / total for worker, demand in demands.items()}
