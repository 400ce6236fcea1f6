"""The beginnings of sorted lists, as pages are read from them."""

from dataclasses import replace

from services.results.answers.outcome_filter import OutcomeFilter, OutcomeMatch, OutcomeSort, SortValue
from services.results.answers.ports import SortedScan
from services.results.answers.sorted_keys_cache import (
    CACHED_KEYS,
    CacheKey,
    SortedKeysCache,
    cache_key,
    from_the_first,
)
from services.results.runs.run_plan import RunPlan, RunRecord

BY_TIME = OutcomeSort(SortValue.TIME)
SCAN = SortedScan("run", range(10_000), BY_TIME, None, 50)
ALL = OutcomeMatch(OutcomeFilter(), ["acc"])


def record(*, is_frozen: bool = True) -> RunRecord:
    return RunRecord(plan=RunPlan(run_id="run", tasks=(), rollouts=1), epoch=3, is_frozen=is_frozen)


def key() -> CacheKey:
    found = cache_key(record(), SCAN, ALL)
    assert found
    return found


def ranked(count: int) -> list[tuple[float, tuple[int, int]]]:
    return [(number / 10, (number, 0)) for number in range(count)]


def test_pages_follow_each_other_and_end_where_less_is_cached() -> None:
    cache = SortedKeysCache()
    assert cache.page(key(), SCAN) is None
    cache.keep(key(), ranked(CACHED_KEYS))
    assert cache.page(key(), SCAN) == ranked(50)
    second = replace(SCAN, after=ranked(50)[-1])
    assert cache.page(key(), second) == ranked(100)[50:]
    # A page that reaches beyond what is cached is read.
    assert cache.page(key(), replace(SCAN, after=ranked(CACHED_KEYS)[-10])) is None


def test_a_short_list_is_cached_whole() -> None:
    cache = SortedKeysCache()
    cache.keep(key(), ranked(60))
    assert cache.page(key(), replace(SCAN, after=ranked(50)[-1])) == ranked(60)[50:]
    assert cache.page(key(), replace(SCAN, after=ranked(60)[-1])) == []


def test_what_may_change_or_is_judged_by_texts_is_not_cached() -> None:
    assert cache_key(record(is_frozen=False), SCAN, ALL) is None
    for chosen in (OutcomeFilter(is_golden=True), OutcomeFilter(text="a"), OutcomeFilter(row_id="a")):
        assert cache_key(record(), SCAN, OutcomeMatch(chosen, ["acc"])) is None
    others = (
        cache_key(record(), replace(SCAN, sort=OutcomeSort(SortValue.TIME, is_descending=True)), ALL),
        cache_key(record(), replace(SCAN, samples=range(5)), ALL),
        cache_key(record(), SCAN, OutcomeMatch(OutcomeFilter(min_score=0.5), ["acc"])),
        cache_key(replace(record(), epoch=4), SCAN, ALL),
    )
    assert len({key(), *others}) == 5


def test_lists_that_were_not_read_for_longest_are_dropped() -> None:
    cache, keys = SortedKeysCache(max_cached=2), [replace(key(), epoch=epoch) for epoch in (1, 2, 3)]
    for each in keys:
        cache.keep(each, ranked(1))
    assert [cache.page(each, SCAN) is not None for each in keys] == [False, True, True]


def test_the_first_reading_is_of_the_beginning() -> None:
    scan = from_the_first(replace(SCAN, after=ranked(3)[-1]))
    assert (scan.after, scan.limit) == (None, CACHED_KEYS)
