"""Ranks on a leaderboard: a run gets the next rank once a paired test distinguishes it from the leader."""

from collections.abc import Callable, Collection, Mapping
from itertools import combinations

from services.results.statistics.paired.estimate import LEVEL, holm

Pair = tuple[int, int]
"""A place and a later place in the list, from 0."""

PValues = Mapping[Pair, float | None]
"""Of paired comparisons; None where a comparison allows no test. Pairs not yet compared are absent."""


def distinguishable(count: int, p_values: PValues) -> frozenset[Pair]:
    """Pairs of so many runs that differ at the 5 % level after Holm's correction over all pairs of the list.

    A pair without a p-value proves nothing, and counts in the correction as p = 1.
    """
    pairs = list(combinations(range(count), 2))
    found = [p_values.get(pair) for pair in pairs]
    adjusted = holm([1.0 if p_value is None else p_value for p_value in found])
    return frozenset(
        pair
        for pair, p_value in zip(pairs, adjusted, strict=True)
        if p_value is not None and p_value <= LEVEL
    )


def ranks(count: int, differing: Collection[Pair]) -> list[int]:
    """Ranks of so many runs that are listed by their figure, the best one first.

    Going down the list, a run shares the rank of the leader (the first run of that rank) unless the two are
    distinguishable. Then it leads the next rank, whose number is its place. So a rank is shared with its
    leader, not between any two runs of it: `ties` gives the pairs that are really tied.
    """
    given: list[int] = []
    for place in range(count):
        leader = given[-1] - 1 if given else place
        given.append(place + 1 if leader == place or (leader, place) in differing else leader + 1)
    return given


def ties(count: int, p_values: PValues, differing: Collection[Pair]) -> list[list[int]]:
    """By place, the other places whose comparison with it shows no difference."""
    return _others(count, lambda pair: p_values.get(pair) is not None and pair not in differing)


def untested(count: int, p_values: PValues) -> list[list[int]]:
    """By place, the other places not yet compared with it, or whose comparison allows no test."""
    return _others(count, lambda pair: p_values.get(pair) is None)


def uncompared(given: list[int], p_values: PValues) -> list[Pair]:
    """Pairs of places not yet compared: those with the leader of a rank first, then the nearest ones."""
    missing = [pair for pair in combinations(range(len(given)), 2) if pair not in p_values]
    return sorted(missing, key=lambda pair: (given[pair[1]] != pair[0] + 1, pair[1] - pair[0], pair))


def _others(count: int, is_wanted: Callable[[Pair], bool]) -> list[list[int]]:
    """By place, the others in wanted pairs with it."""
    found: list[list[int]] = [[] for _ in range(count)]
    for first, second in filter(is_wanted, combinations(range(count), 2)):
        found[first].append(second)
        found[second].append(first)
    return [sorted(others) for others in found]
