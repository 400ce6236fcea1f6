"""The beginnings of sorted lists that were read a short time ago.

Each is made by reading all outcomes of a run. Those of a frozen run never change, and a retry
begins another epoch. Marks do change, so lists of marked answers are not cached.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from services.results.answers.outcome_filter import OutcomeMatch, OutcomeSort
from services.results.answers.ports import SortedKey, SortedScan
from services.results.runs.run_plan import RunRecord

# Forty pages of fifty. Later pages are read from Postgres.
CACHED_KEYS = 2000
# Some 0.4 MB each.
MAX_CACHED = 50


@dataclass(frozen=True, slots=True)
class CacheKey:
    """The inputs that a sorted list follows from. `wanted` has its filter and status."""

    run_id: str
    epoch: int
    first_sample: int
    end_sample: int
    sort: OutcomeSort
    wanted: tuple[object, ...]


def cache_key(record: RunRecord, scan: SortedScan, wanted: OutcomeMatch) -> CacheKey | None:
    """None for a list that may change, or whose conditions are judged beside the texts."""
    chosen = wanted.filter
    if not record.is_frozen or chosen.mark is not None or chosen.row_id or chosen.text:
        return None
    return CacheKey(
        run_id=scan.run_id,
        epoch=record.epoch,
        first_sample=scan.samples.start,
        end_sample=scan.samples.stop,
        sort=scan.sort,
        wanted=(chosen, tuple(wanted.metrics), wanted.status),
    )


@dataclass(slots=True)
class SortedKeysCache:
    """The lists that were read last. They live in this process: each replica reads for itself."""

    max_cached: int = MAX_CACHED
    _by_key: OrderedDict[CacheKey, Sequence[SortedKey]] = field(default_factory=OrderedDict)

    def page(self, key: CacheKey, scan: SortedScan) -> Sequence[SortedKey] | None:
        """The keys of a scan; None where its page reaches beyond what is cached."""
        ranked = self._by_key.get(key)
        if ranked is None:
            return None
        self._by_key.move_to_end(key)
        start = bisect_right(ranked, scan.after) if scan.after else 0
        found = ranked[start : start + scan.limit]
        is_whole = len(ranked) < CACHED_KEYS
        return found if is_whole or len(found) == scan.limit else None

    def keep(self, key: CacheKey, ranked: Sequence[SortedKey]) -> None:
        """Keeps the first keys of a list, which are all where they are fewer than `CACHED_KEYS`."""
        self._by_key[key] = ranked
        while len(self._by_key) > self.max_cached:
            self._by_key.popitem(last=False)


def from_the_first(scan: SortedScan) -> SortedScan:
    """The scan of the beginning of the same list. It takes as long: all outcomes are read anyway."""
    return replace(scan, after=None, limit=CACHED_KEYS)
