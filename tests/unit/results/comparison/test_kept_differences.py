"""Differences of a comparison that were computed a short time ago."""

from services.results.comparison.comparison import ComparisonKey, Difference, KeptDifferences
from services.results.statistics.paired.estimate import DifferenceEstimate


def key(epoch: int = 1, metric: str = "acc", *, is_forced: bool = False) -> ComparisonKey:
    return ComparisonKey((("a", 1), ("b", epoch)), (metric,), (), is_forced)


def differences(count: int) -> list[Difference]:
    return [Difference(0, 1, f"task {n}", "acc", DifferenceEstimate(pairs=n)) for n in range(count)]


def test_only_the_same_comparison_of_the_same_epochs_is_found() -> None:
    kept = KeptDifferences()
    kept.keep(key(), differences(2))
    assert kept.find(key()) == differences(2)
    assert [kept.find(other) for other in (key(epoch=2), key(metric="f1"), key(is_forced=True))] == [None] * 3


def test_those_that_were_not_read_for_longest_are_dropped() -> None:
    kept = KeptDifferences(max_cached=5)
    for epoch in (1, 2):
        kept.keep(key(epoch), differences(2))
    assert kept.find(key(1))
    kept.keep(key(3), differences(2))
    assert [bool(kept.find(key(epoch))) for epoch in (1, 2, 3)] == [True, False, True]
    # More than all that may be kept is not kept at all.
    kept.keep(key(4), differences(6))
    assert [bool(kept.find(key(epoch))) for epoch in (1, 3, 4)] == [True, True, False]
