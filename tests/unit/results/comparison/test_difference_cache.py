"""Differences of a comparison that were computed a short time ago."""

from services.results.comparison.comparison import ComparisonKey, Difference, DifferenceCache
from services.results.statistics.paired.difference_estimate import DifferenceEstimate


def key(epoch: int = 1, metric: str = "acc", *, is_forced: bool = False) -> ComparisonKey:
    return ComparisonKey((("a", 1), ("b", epoch)), (metric,), (), is_forced)


def differences(count: int) -> list[Difference]:
    return [Difference(0, 1, f"task {n}", "acc", DifferenceEstimate(pairs=n)) for n in range(count)]


def test_only_the_same_comparison_of_the_same_epochs_is_found() -> None:
    cache = DifferenceCache()
    cache.keep(key(), differences(2))
    assert cache.find(key()) == differences(2)
    assert [cache.find(other) for other in (key(epoch=2), key(metric="f1"), key(is_forced=True))] == [
        None
    ] * 3


def test_those_that_were_not_read_for_longest_are_dropped() -> None:
    cache = DifferenceCache(max_cached=5)
    for epoch in (1, 2):
        cache.keep(key(epoch), differences(2))
    assert cache.find(key(1))
    cache.keep(key(3), differences(2))
    assert [bool(cache.find(key(epoch))) for epoch in (1, 2, 3)] == [True, False, True]
    # More than all that may be cached is not cached at all.
    cache.keep(key(4), differences(6))
    assert [bool(cache.find(key(epoch))) for epoch in (1, 3, 4)] == [True, True, False]
